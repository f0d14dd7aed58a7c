"""The shipped κ: cross-encoders that read the question with two chunks, or options and one."""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gcmem import deadline
from gcmem.calls import as_one_call, current_call
from gcmem.judge.local.cross_encoder import END, CrossEncoder, layout, pair_rows, tokens_of
from gcmem.judge.recipe import SHIPPED, load_recipe


class LocalClassifier:
    """Reads pairs and stances on a CPU, without a language model; loaded at first use.

    A pair's score is calibrated on held-out pairs and symmetric. Most pairs are so clearly a
    conflict or none that a small model sees it; the others are read by a larger one, and so are
    stances. What it takes for a conflict, and not surely, is read again without the question.
    """

    def __init__(self, *, workers: int = 2, folder: Path = SHIPPED) -> None:
        """`workers` is how many rows are read at once, one core each."""
        self._settings: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
        self._workers = workers
        self._model = CrossEncoder(folder / "model.onnx")
        self._screen = CrossEncoder(folder / "screen.onnx")
        self.id = f"{self._settings['name']}@{self._settings['version']}"
        self.recipe = load_recipe(folder)
        self.threshold = self.recipe.threshold

    @as_one_call
    def score(self, question: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Returns, for each pair, how surely the two can't both be true now."""
        if not pairs:
            return []
        rows = pair_rows(question, pairs, room=self._settings["max_tokens"])
        return deadline.map_in_threads(self._conflict, rows, pairs, workers=self._workers)

    def glance(self, question: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Returns the small model's opinion of each pair."""
        if not pairs:
            return []
        rows = pair_rows(question, pairs, room=self._settings["max_tokens"])
        return deadline.map_in_threads(self._glance, rows, workers=self._workers)

    def stances(
        self, question: str, options: Sequence[str], texts: Sequence[str]
    ) -> list[tuple[float, ...]]:
        """Returns, for each text, the probability of every option, and last that of none."""
        asked = (question, *options)
        # The oracle and the reader ask for the same stances in one call.
        computed = current_call().computed
        keys = {text: ("stance", self.id, asked, text) for text in texts}
        missing = [text for text, key in keys.items() if key not in computed]
        if missing:
            tokens = tokens_of([*asked, *missing])
            room = self._settings["max_tokens"]
            rows = [
                layout([*(tokens[t] for t in asked), tokens[text]], room=room) for text in missing
            ]
            read = deadline.map_in_threads(
                partial(self._stance, count=len(options)), rows, workers=self._workers
            )
            computed.update(zip((keys[text] for text in missing), read, strict=True))
        return [computed[keys[text]] for text in texts]

    def answers(self, question: str, texts: Sequence[str]) -> list[float]:
        """Returns, for each text, how surely it answers the question."""
        tokens = tokens_of([question, *texts])
        room = self._settings["max_tokens"]
        rows = [layout([tokens[question], tokens[text]], room=room) for text in texts]
        return deadline.map_in_threads(self._answer, rows, workers=self._workers)

    def _answer(self, row: list[int]) -> float:
        (logit,) = self._model.run(row, ["answer"])
        return _probability(float(logit))

    def _conflict(self, row: list[int], pair: tuple[str, str]) -> float:
        screen = self._settings["screen"]
        glance = self._glance(row)
        if glance < screen["below"] or glance >= screen["above"]:
            return glance
        logit = self._both(row)
        score = _probability(logit)
        if self.threshold <= score < self._settings["doubtful_below"]:
            # A question makes any two lines look like two answers: do they contradict without it?
            (bare,) = pair_rows("", [pair], room=self._settings["max_tokens"])
            if bare != row:
                score = _probability((logit + self._both(bare)) / 2)
        return score

    def _both(self, row: list[int]) -> float:
        """Returns the logit of both models together: two opinions err less often than one."""
        weights = self._settings["pair"]
        (look,) = self._model.run(row, ["pair"])
        both = weights["model"] * float(look) + weights["screen"] * self._screen_logit(row)
        return float(both + weights["bias"])

    def _glance(self, row: list[int]) -> float:
        screen = self._settings["screen"]
        return _probability(screen["scale"] * self._screen_logit(row) + screen["bias"])

    def _screen_logit(self, row: list[int]) -> float:
        """Returns the small model's logit; what was glanced at may be read more closely next."""
        computed = current_call().computed
        key = ("glance", self.id, array("I", row).tobytes())
        if key not in computed:
            (logit,) = self._screen.run(row, ["pair"])
            computed[key] = float(logit)
        known: float = computed[key]
        return known

    def _stance(self, row: list[int], *, count: int) -> tuple[float, ...]:
        none, every = self._model.run(row, ["none", "option"])
        # An option's logit stands at the separator that closes it; the question's comes first.
        closes = [place for place, token in enumerate(row) if token == END][1 : count + 1]
        logits = np.array([every[place] for place in closes], dtype=np.float64)
        total = np.logaddexp.reduce(logits)
        on_topic = _probability(float(total - none))
        return (*(on_topic * np.exp(logits - total)).tolist(), 1 - on_topic)


def _probability(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))
