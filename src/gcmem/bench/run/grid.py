"""The grid of conditions of a run, from a preset, a YAML file, or both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

from gcmem.bench.run.outcomes import Condition
from gcmem.errors import InvalidInputError, MissingExtraError

RANKING = (
    "standard", "timestamp", "time-decay", "multi-factor:recency+relevance",
    "multi-factor:recency+relevance+usage", "multi-factor:recency+relevance+stability",
    "multi-factor:full",
)  # fmt: skip
PATHS = (*RANKING, "gcmem")
SETTINGS = ("retrieval", "bag")
RETRIEVALS = ("dense", "paper", "stratified")
MODES = ("forced-choice", "allow-unclear")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Every combination of the fields is a condition; only the path `gcmem` uses oracles."""

    datasets: tuple[str, ...] = ("chat-medium",)
    settings: tuple[str, ...] = ("retrieval",)
    retrievals: tuple[str, ...] = RETRIEVALS
    readers: tuple[str, ...] = ("local",)
    modes: tuple[str, ...] = ("forced-choice",)
    paths: tuple[str, ...] = ("standard", "timestamp", "time-decay", "gcmem")
    oracles: tuple[str, ...] = ("local",)
    ks: tuple[int, ...] = (10,)
    limit: int | None = None
    """Maximum instances per dataset, evenly spread over it."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name, allowed in (
            ("settings", SETTINGS), ("retrievals", RETRIEVALS), ("modes", MODES), ("paths", PATHS),
        ):  # fmt: skip
            unknown = set(getattr(self, name)) - set(allowed)
            if unknown:
                said = ", ".join(sorted(unknown))
                raise InvalidInputError(f"unknown {name}: {said}; known: {', '.join(allowed)}")

    def conditions(self, dataset: str) -> Iterator[Condition]:
        """Yields the conditions of a dataset; the bag of facts has neither retrieval nor k."""
        for setting, reader, mode, path in product(
            self.settings, self.readers, self.modes, self.paths
        ):
            bag = setting == "bag"
            for retrieval, k in product(
                ("none",) if bag else self.retrievals, (0,) if bag else self.ks
            ):
                for oracle in self.oracles if path == "gcmem" else ("",):
                    yield Condition(
                        dataset=dataset, setting=setting, retrieval=retrieval, reader=reader,
                        mode=mode, path=path, oracle=oracle, k=k,
                    )  # fmt: skip


PRESETS = {
    "quick": Grid(settings=SETTINGS, readers=("majority", "local"), limit=10),
    "offline": Grid(
        datasets=("chat-medium", "chat-large", "chat-hard"),
        settings=SETTINGS,
        readers=("majority", "local"),
        oracles=("local", "gold"),
    ),
    "paper-main": Grid(datasets=("chat-medium", "chat-large"), modes=MODES),
    "paper-ablation": Grid(retrievals=("stratified",), readers=("majority", "local"), paths=PATHS),
    "paper-bof": Grid(datasets=("chat-medium", "chat-large"), settings=("bag",), modes=MODES),
    "paper-sweep": Grid(
        datasets=("mutation",), retrievals=("dense", "stratified"), readers=("majority", "local")
    ),
}
"""Grids by name; the paper's accept any readers (`--reader`)."""


def load_grid(path: Path) -> Grid:
    """Reads the fields of `Grid` from YAML; `preset` names the grid for missing fields."""
    try:
        import yaml
    except ImportError:
        raise MissingExtraError("bench", package="pyyaml") from None
    try:
        found = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidInputError(f"can't read {path}: {error}") from None
    if not isinstance(found, dict):
        raise InvalidInputError(f"{path}: expected a mapping of fields")
    return change(preset(str(found.pop("preset", "quick"))), found)


def preset(name: str) -> Grid:
    """Returns a preset by name."""
    if name not in PRESETS:
        raise InvalidInputError(f"no preset {name!r}: pass one of {', '.join(PRESETS)}")
    return PRESETS[name]


def change(grid: Grid, changes: Mapping[str, Any]) -> Grid:
    """Returns the grid with some fields replaced; raises InvalidInputError for unknown fields."""
    known = {field.name for field in fields(Grid)}
    unknown = set(changes) - known
    if unknown:
        raise InvalidInputError(f"unknown: {', '.join(sorted(unknown))}; known: {sorted(known)}")
    changed: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in changes.items()
    }
    return replace(grid, **changed)
