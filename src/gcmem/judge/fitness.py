"""What is known of how fit oracles are, and what follows: may an oracle remove anything?"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from gcmem.errors import StoreUnavailableError, UnqualifiedOracleWarning
from gcmem.private_files import make_private_folder, write_private
from gcmem.protocols import ConflictOracle
from gcmem.types import Fitness

SHIPPED_RECORD = Path(__file__).parents[1] / "models" / "kappa" / "qualification.json"
RECORD = Path("~/.gcmem/qualified.json")
"""Where `gcmem qualify` keeps what it measured. Only the command line and the servers read it."""


def save_fitness(oracle_id: str, fitness: Fitness, *, record: Path = RECORD) -> None:
    """Keeps how fit an oracle is, under its id."""
    try:
        path = record.expanduser()
        make_private_folder(path.parent)
        known = {**load_fitness(path), oracle_id: fitness}
        temporary = path.with_name(f"{path.name}.{os.getpid()}")
        write_private(temporary, json.dumps(known, indent=2) + "\n")
        temporary.replace(path)
    except (OSError, RuntimeError) as error:
        raise StoreUnavailableError(f"the result can't be kept in {record}: {error}") from error


def load_fitness(record: Path = RECORD) -> dict[str, Fitness]:
    """Returns what a record says of each oracle, by id; nothing where there is no record."""
    try:
        found = json.loads(record.expanduser().read_text("utf-8"))
    except (OSError, ValueError, RuntimeError):
        return {}
    known = found.items() if isinstance(found, dict) else ()
    return {oracle: fitness for oracle, fitness in known if fitness in get_args(Fitness)}


def fitness_of(oracle_id: str, qualification: Mapping[str, Fitness]) -> Fitness | None:
    """Returns how fit an oracle is; None where nobody measured it.

    What came with the release counts more: it was measured on more than others are likely to have.
    """
    return {**qualification, **load_fitness(SHIPPED_RECORD)}.get(oracle_id)


def may_remove(oracle: ConflictOracle, qualification: Mapping[str, Fitness]) -> bool:
    """Tells whether an oracle may remove chunks, and warns where it may only annotate."""
    known = fitness_of(oracle.id, qualification)
    if known in ("optimal", "marginal"):
        return True
    why = "was measured as unfit" if known == "unfit" else "was never measured"
    warnings.warn(
        f"oracle {oracle.id!r} {why}, so it only annotates: what it would remove stays in the "
        "results. Measure it with `gcmem qualify` and pass qualification=load_fitness(), or remove "
        "all the same with require_qualified=False, on the command line --unqualified",
        UnqualifiedOracleWarning,
        stacklevel=4,
    )
    return False
