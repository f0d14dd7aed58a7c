"""Records how fit each oracle is, and decides whether it may remove chunks."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from gcmem.errors import StoreUnavailableError, UnqualifiedOracleWarning
from gcmem.private_files import make_private_folder, write_private
from gcmem.protocols import ClaimJudge, ConflictOracle
from gcmem.types import Fitness

SHIPPED_RECORD = Path(__file__).parents[1] / "models" / "kappa" / "qualification.json"
RECORD = Path("~/.gcmem/qualified.json")
"""Where `gcmem qualify` saves its results. Only the command line and the servers read it."""


def save_fitness(oracle_id: str, fitness: Fitness, *, record: Path = RECORD) -> None:
    """Saves the fitness of an oracle under its id."""
    try:
        path = record.expanduser()
        make_private_folder(path.parent)
        known = {**load_fitness(path), oracle_id: fitness}
        temporary = path.with_name(f"{path.name}.{os.getpid()}")
        write_private(temporary, json.dumps(known, indent=2) + "\n")
        temporary.replace(path)
    except (OSError, RuntimeError) as error:
        raise StoreUnavailableError(f"can't save the result in {record}: {error}") from error


def load_fitness(record: Path = RECORD) -> dict[str, Fitness]:
    """Returns the fitness of each oracle in a record, by id; empty if there is no record."""
    try:
        found = json.loads(record.expanduser().read_text("utf-8"))
    except (OSError, ValueError, RuntimeError):
        return {}
    known = found.items() if isinstance(found, dict) else ()
    return {oracle: fitness for oracle, fitness in known if fitness in get_args(Fitness)}


def fitness_of(oracle_id: str, qualification: Mapping[str, Fitness]) -> Fitness | None:
    """Returns the fitness of an oracle, or None if it was never measured.

    The shipped record overrides `qualification`: it was measured on more data.
    """
    return {**qualification, **load_fitness(SHIPPED_RECORD)}.get(oracle_id)


def may_remove(oracle: ConflictOracle | ClaimJudge, qualification: Mapping[str, Fitness]) -> bool:
    """Returns whether an oracle may remove chunks. Warns if it may only annotate."""
    known = fitness_of(oracle.id, qualification)
    if known in ("optimal", "marginal"):
        return True
    why = "was measured as unfit" if known == "unfit" else "was never measured"
    warnings.warn(
        f"oracle {oracle.id!r} {why}, so it only annotates: stale chunks stay in the results. "
        "Measure it with `gcmem qualify` and pass qualification=load_fitness(), or force removal "
        "with require_qualified=False (on the command line: --unqualified)",
        UnqualifiedOracleWarning,
        stacklevel=4,
    )
    return False
