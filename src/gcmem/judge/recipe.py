"""The settings of an oracle around its model, and the id that identifies both.

The tuned numbers are stored with the model, in its `config.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from gcmem.protocols import Reads

SHIPPED = Path(__file__).parents[1] / "models" / "kappa"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSettings:
    """Which pairs are worth judging. Similarities are cosines of the gate's encoder."""

    closeness: float
    """Minimum mean of a pair's similarity and its similarity to the question."""
    on_topic: float
    """Minimum similarity to the question."""
    few: int
    """Up to this many pairs, half of `closeness` is enough, and no pair is skipped."""
    near: int
    """Maximum number of newer chunks a chunk is compared with: the newest, then the closest."""
    promising: float
    """With more than `few` pairs, the full model skips those with a lower first score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FocusSettings:
    """When to score the sentences of an older text one by one."""

    worth: float
    """Minimum score of a pair for a second look."""
    untouched: float
    """Below this score, the sentence closest to the question is not contradicted."""
    elsewhere: float
    """Minimum margin by which another sentence must score higher."""
    others: int
    """How many of the other sentences are scored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainSettings:
    """How the states of all chunks are combined over time."""

    threshold: float
    """Minimum score of a conflict."""
    on_topic: float
    """Minimum probability that a chunk is on the topic; others are not compared."""
    switch: float
    """Probability that the state changes from one chunk on the topic to the next."""
    doubt: float
    """The share of every stance that is treated as noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimSettings:
    """How claims are judged ahead, and from which scores on something follows."""

    reads: Reads
    promising: float
    """The full model skips pairs with a lower first score."""
    sure: float
    """From this score on, the older claim is outdated."""
    likely: float
    """From this score on, the older claim is doubtful."""
    floor: float
    """Rulings below this score are not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """All settings around a model that affect a verdict."""

    threshold: float
    encoder: str
    """The id of the encoder that gate and focus use."""
    gate: GateSettings
    focus: FocusSettings
    chain: ChainSettings
    claims: ClaimSettings

    @property
    def parts(self) -> dict[str, str]:
        """The settings as strings, for `oracle_id` to compare."""
        return {
            "threshold": f"{self.threshold:g}",
            "gate": describe(self.gate, encoder=self.encoder),
            "focus": describe(self.focus, encoder=self.encoder),
            "chain": describe(self.chain),
        }


PLAIN = {"threshold": "0.5", "gate": "none", "focus": "none", "chain": "none"}
"""The parts of an oracle that consists of a classifier alone."""


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
        claims=ClaimSettings(
            reads=Reads(**config["claims"]["reads"]),
            **{name: config["claims"][name] for name in ("promising", "sure", "likely", "floor")},
        ),
    )


@lru_cache(maxsize=1)
def shipped_recipe() -> Recipe:
    """Returns the recipe of the shipped model."""
    return load_recipe(SHIPPED)


def describe(
    settings: GateSettings | FocusSettings | ChainSettings | Reads | None, *, encoder: str = ""
) -> str:
    """Returns the settings in one line, after the id of their encoder."""
    if settings is None:
        return "none"
    values = settings if isinstance(settings, tuple) else astuple(settings)
    return " ".join([*([encoder] if encoder else []), *(f"{v:g}" for v in values)])


def oracle_id(model: Any, parts: Mapping[str, str]) -> str:
    """Returns the model's id, followed by the parts that differ from the model's recipe."""
    recipe = getattr(model, "recipe", None)
    own = PLAIN if recipe is None else recipe.parts
    changed = [f"{name}={value}" for name, value in parts.items() if value != own[name]]
    return f"{model.id}[{', '.join(changed)}]" if changed else str(model.id)
