"""The shipped κ: cross-encoders that read a question with two texts, or with options and one."""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gcmem import deadline
from gcmem.calls import as_one_call, current_call
from gcmem.judge.local.cross_encoder import END, CrossEncoder, layout, pair_rows, tokens_of
from gcmem.judge.recipe import SHIPPED, load_recipe


class LocalClassifier:
    """Scores pairs and stances on a CPU, without a language model; loaded at first use.

    Pair scores are symmetric, and calibrated on held-out pairs. A small model decides the clear
    pairs; a larger one reads the others, and all stances. A doubtful conflict is read again
    without the question.
    """

    def __init__(self, *, workers: int = 2, folder: Path = SHIPPED) -> None:
        """`workers` is how many rows are read in parallel, one core each."""
        self._settings: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
        self._workers = workers
        self._model = CrossEncoder(folder / "model.onnx")
        self._screen = CrossEncoder(folder / "screen.onnx")
        self.id = f"{self._settings['name']}@{self._settings['version']}"
        self.language: str = self._settings["language"]
        self.recipe = load_recipe(folder)
        self.threshold = self.recipe.threshold

    def with_workers(self, workers: int) -> LocalClassifier:
        """Returns the same classifier, with the same loaded models, on more or fewer cores."""
        other = copy(self)
        other._workers = workers
        return other

    @as_one_call
    def score(self, question: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Returns the probability that the two texts of each pair can't both be true now."""
        if not pairs:
            return []
        rows = pair_rows(question, pairs, max_tokens=self._settings["max_tokens"])
        return deadline.map_in_threads(self._conflict, rows, pairs, workers=self._workers)

    def glance(self, question: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Returns the small model's score of each pair."""
        if not pairs:
            return []
        rows = pair_rows(question, pairs, max_tokens=self._settings["max_tokens"])
        return deadline.map_in_threads(self._glance, rows, workers=self._workers)

    def stances(
        self, question: str, options: Sequence[str], texts: Sequence[str]
    ) -> list[tuple[float, ...]]:
        """Returns one row per text: the probability of each option, and last of none of them."""
        asked = (question, *options)
        # The oracle and the reader ask for the same stances in one call: compute them once.
        computed = current_call().computed
        keys = {text: ("stance", self.id, asked, text) for text in texts}
        missing = [text for text, key in keys.items() if key not in computed]
        if missing:
            tokens = tokens_of([*asked, *missing])
            max_tokens = self._settings["max_tokens"]
            rows = [
                layout([*(tokens[t] for t in asked), tokens[text]], max_tokens=max_tokens)
                for text in missing
            ]
            read = deadline.map_in_threads(
                partial(self._stance, count=len(options)), rows, workers=self._workers
            )
            computed.update(zip((keys[text] for text in missing), read, strict=True))
        return [computed[keys[text]] for text in texts]

    def answers(self, question: str, texts: Sequence[str]) -> list[float]:
        """Returns the probability that each text answers the question."""
        tokens = tokens_of([question, *texts])
        max_tokens = self._settings["max_tokens"]
        rows = [layout([tokens[question], tokens[text]], max_tokens=max_tokens) for text in texts]
        return deadline.map_in_threads(self._answer, rows, workers=self._workers)

    def _answer(self, row: list[int]) -> float:
        (logit,) = self._model.run(row, ["answer"])
        return _probability(float(logit))

    def _conflict(self, row: list[int], pair: tuple[str, str]) -> float:
        screen = self._settings["screen"]
        glance = self._glance(row)
        if glance < screen["below"] or glance >= screen["above"]:
            return glance
        logit = self._combined_logit(row)
        score = _probability(logit)
        if self.threshold <= score < self._settings["doubtful_below"]:
            # With a question, any two texts look like rival answers: do they conflict without it?
            (bare,) = pair_rows("", [pair], max_tokens=self._settings["max_tokens"])
            if bare != row:
                score = _probability((logit + self._combined_logit(bare)) / 2)
        return score

    def _combined_logit(self, row: list[int]) -> float:
        """Returns the weighted logit of both models: together they err less often."""
        weights = self._settings["pair"]
        (look,) = self._model.run(row, ["pair"])
        both = weights["model"] * float(look) + weights["screen"] * self._screen_logit(row)
        return float(both + weights["bias"])

    def _glance(self, row: list[int]) -> float:
        screen = self._settings["screen"]
        return _probability(screen["scale"] * self._screen_logit(row) + screen["bias"])

    def _screen_logit(self, row: list[int]) -> float:
        """Returns the small model's logit; within a call it is computed once per row."""
        computed = current_call().computed
        key = ("glance", self.id, array("I", row).tobytes())
        if key not in computed:
            (logit,) = self._screen.run(row, ["pair"])
            computed[key] = float(logit)
        known: float = computed[key]
        return known

    def _stance(self, row: list[int], *, count: int) -> tuple[float, ...]:
        none, every = self._model.run(row, ["none", "option"])
        # An option's logit is at the separator after it; the first separator is the question's.
        closes = [place for place, token in enumerate(row) if token == END][1 : count + 1]
        logits = np.array([every[place] for place in closes], dtype=np.float64)
        total = np.logaddexp.reduce(logits)
        on_topic = _probability(float(total - none))
        return (*(on_topic * np.exp(logits - total)).tolist(), 1 - on_topic)


def _probability(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))
