"""How an oracle is put together around a model, and the id that names all of it.

The tuned numbers are kept with the model, in its `config.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

SHIPPED = Path(__file__).parents[1] / "models" / "kappa"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSettings:
    """Which pairs are worth judging, in cosines of the gate's encoder."""

    closeness: float
    """Minimum mean of a pair's similarity and its similarity to the question."""
    on_topic: float
    """Minimum similarity to the question."""
    few: int
    """Up to this many pairs, half of `closeness` is enough, and every pair is read."""
    near: int
    """A chunk is compared with this many newer ones: the newest, then the closest."""
    promising: float
    """Of many pairs, those with a lower first guess are not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FocusSettings:
    """When the sentences of an older text are looked at one by one."""

    worth: float
    """Minimum score of a pair that is looked at again."""
    untouched: float
    """Below this score, the sentence that was asked about is not contradicted."""
    elsewhere: float
    """By how much another sentence must score more."""
    others: int
    """How many of the other sentences are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainSettings:
    """How the states of all chunks are joined over time."""

    threshold: float
    """Minimum score of a conflict."""
    on_topic: float
    """A chunk that is less on the topic than this is not compared."""
    switch: float
    """How likely the state changes from one chunk on the topic to the next."""
    doubt: float
    """The share of every stance that counts as noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Everything around a model that decides a verdict."""

    threshold: float
    encoder: str
    """The id of the encoder of gate and focus."""
    gate: GateSettings
    focus: FocusSettings
    chain: ChainSettings

    @property
    def parts(self) -> dict[str, str]:
        """The parts as `oracle_id` compares them."""
        return {
            "threshold": f"{self.threshold:g}",
            "gate": describe(self.gate, encoder=self.encoder),
            "focus": describe(self.focus, encoder=self.encoder),
            "chain": describe(self.chain),
        }


PLAIN = {"threshold": "0.5", "gate": "none", "focus": "none", "chain": "none"}
"""The parts of an oracle that is a classifier and nothing else."""


def load_recipe(folder: Path) -> Recipe:
    """Reads the recipe of the model in a folder."""
    config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
    found = config["oracle"]
    return Recipe(
        threshold=config["threshold"],
        encoder=found["encoder"],
        gate=GateSettings(**found["gate"]),
        focus=FocusSettings(**found["focus"]),
        chain=ChainSettings(**found["chain"]),
    )


@lru_cache(maxsize=1)
def shipped_recipe() -> Recipe:
    """Returns the recipe of the shipped model."""
    return load_recipe(SHIPPED)


def describe(
    settings: GateSettings | FocusSettings | ChainSettings | None, *, encoder: str = ""
) -> str:
    """Returns settings in one line, with the encoder they were tuned for."""
    if settings is None:
        return "none"
    return " ".join([*([encoder] if encoder else []), *(f"{v:g}" for v in astuple(settings))])


def oracle_id(model: Any, parts: Mapping[str, str]) -> str:
    """Returns the model's id, and behind it whatever departs from the model's own recipe."""
    recipe = getattr(model, "recipe", None)
    own = PLAIN if recipe is None else recipe.parts
    changed = [f"{name}={value}" for name, value in parts.items() if value != own[name]]
    return f"{model.id}[{', '.join(changed)}]" if changed else str(model.id)
