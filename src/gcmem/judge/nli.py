"""A pair classifier around any NLI cross-encoder, in ONNX or sentence-transformers format."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcmem import deadline
from gcmem.errors import InvalidInputError, MissingExtraError
from gcmem.onnx_models import open_model, open_tokenizer

ONNX_FILES = ("model.onnx", "onnx/model.onnx")
TORCH_FILES = ("model.safetensors", "pytorch_model.bin")
Logits = Callable[[str, str], NDArray[np.float64]]
MAX_TOKENS = 512
"""Longer pairs are cut; every common NLI model was trained up to this length."""


class NLIClassifier:
    """Scores a pair by the probability of "contradiction", averaged over both orders.

    The folder holds `model.onnx` (or `onnx/model.onnx`), `tokenizer.json` and `config.json`.
    Without an ONNX file it must hold a sentence-transformers cross-encoder, which needs the extra
    of that name. The question is ignored. The model is loaded at first use.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        labels: Mapping[int, str] | None = None,
        threads: int = 1,
    ) -> None:
        """`labels` (logit number to name) overrides the labels in the config.

        `threads` is the number of cores an ONNX model uses; 0 means all.
        """
        self._folder = Path(folder)
        self._model_file = self._find(*ONNX_FILES, *TORCH_FILES)
        self._tokenizer_file = self._find("tokenizer.json")
        self._config = self._read_config()
        self._labels = self._config_labels() if labels is None else dict(labels)
        self._contradiction = self._find_contradiction()
        self._threads = threads
        self._lock = threading.Lock()
        self._logits: Logits | None = None
        # Verdicts are saved under this id, so a different model in the same folder needs a new one.
        self.id = f"nli:{self._folder.resolve().name}:{self._fingerprint()}@1"

    def score(self, question: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Returns the probability of a contradiction for each pair."""
        if not pairs:
            return []
        logits = self._load()
        # One pair at a time: padding and int8 scaling make a score depend on the rest of its batch.
        return [self._both_ways(logits, older, newer) for older, newer in pairs]

    def _both_ways(self, logits: Logits, older: str, newer: str) -> float:
        with deadline.step():
            one, other = logits(older, newer), logits(newer, older)
        return (self._probability(one) + self._probability(other)) / 2

    def _probability(self, logits: NDArray[np.float64]) -> float:
        if logits.size != len(self._labels):
            raise InvalidInputError(
                f"{self._model_file} has {logits.size} outputs, but there are "
                f"{len(self._labels)} labels; pass labels={{0: ..., 1: ...}}"
            )
        weights = np.exp(logits - logits.max())
        return float(weights[self._contradiction] / weights.sum())

    def _load(self) -> Logits:
        with self._lock:
            if self._logits is None:
                is_onnx = self._model_file.suffix == ".onnx"
                self._logits = self._open_onnx() if is_onnx else self._open_torch()
            return self._logits

    def _open_onnx(self) -> Logits:
        path = self._tokenizer_file
        try:
            tokenizer = open_tokenizer(path)
            path = self._model_file
            session = open_model(path, threads=self._threads)
        except Exception as error:  # both libraries raise their own errors, or bare Exception
            raise InvalidInputError(f"{path} can't be loaded: {error}") from error
        self._check_inputs(session)
        tokenizer.no_padding()
        tokenizer.enable_truncation(max_length=self._max_tokens(tokenizer))
        outputs = [output.name for output in session.get_outputs()]
        output = "logits" if "logits" in outputs else outputs[0]

        def logits(premise: str, hypothesis: str) -> NDArray[np.float64]:
            encoding = tokenizer.encode(premise, hypothesis)
            known = {
                "input_ids": encoding.ids,
                "attention_mask": encoding.attention_mask,
                "token_type_ids": encoding.type_ids,
            }
            inputs = {
                wanted.name: np.array(
                    [known[wanted.name]], dtype=np.int32 if "int32" in wanted.type else np.int64
                )
                for wanted in session.get_inputs()
            }
            return np.asarray(session.run([output], inputs)[0], dtype=np.float64).reshape(-1)

        return logits

    def _open_torch(self) -> Logits:
        try:
            from sentence_transformers import CrossEncoder
        except ImportError:
            raise MissingExtraError(
                "sentence-transformers", package="sentence-transformers"
            ) from None
        try:
            model: Any = CrossEncoder(str(self._folder), device="cpu", local_files_only=True)
        except Exception as error:  # the library and the model's own code may raise anything
            raise InvalidInputError(f"{self._model_file} can't be loaded: {error}") from error

        def logits(premise: str, hypothesis: str) -> NDArray[np.float64]:
            found = model.predict(
                [(premise, hypothesis)],
                activation_fn=lambda scores: scores,
                show_progress_bar=False,
            )
            return np.asarray(found, dtype=np.float64).reshape(-1)

        return logits

    def _check_inputs(self, session: Any) -> None:
        known = {"input_ids", "attention_mask", "token_type_ids"}
        unknown = sorted({wanted.name for wanted in session.get_inputs()} - known)
        if unknown:
            raise InvalidInputError(
                f"{self._model_file} asks for {', '.join(unknown)}; export it so that it takes "
                f"only {', '.join(sorted(known))}"
            )

    def _max_tokens(self, tokenizer: Any) -> int:
        limits = [MAX_TOKENS, self._config.get("max_position_embeddings")]
        if tokenizer.truncation is not None:
            limits.append(tokenizer.truncation["max_length"])
        return min(limit for limit in limits if isinstance(limit, int) and limit > 0)

    def _find(self, *names: str) -> Path:
        for name in names:
            if (self._folder / name).is_file():
                return self._folder / name
        raise InvalidInputError(f"{self._folder} has no {' and no '.join(names)}")

    def _read_config(self) -> dict[str, Any]:
        path = self._find("config.json")
        try:
            config = json.loads(path.read_text("utf-8"))
        except ValueError as error:
            raise InvalidInputError(f"{path} is not valid JSON: {error}") from error
        if not isinstance(config, dict):
            raise InvalidInputError(f"{path} is not a JSON object")
        return config

    def _config_labels(self) -> dict[int, str]:
        found = self._config.get("id2label")
        if isinstance(found, dict) and found and all(number.isdecimal() for number in found):
            return {int(number): str(name) for number, name in found.items()}
        raise InvalidInputError(
            f"{self._folder / 'config.json'} has no usable id2label; "
            "pass labels={0: 'contradiction', ...}"
        )

    def _find_contradiction(self) -> int:
        if sorted(self._labels) != list(range(len(self._labels))) or len(self._labels) < 2:
            raise InvalidInputError(
                f"labels={self._labels}: name every output, numbered from 0, at least two"
            )
        for number, name in sorted(self._labels.items()):
            if name.casefold().startswith("contra"):
                return number
        raise InvalidInputError(
            f"no label of {self._folder} starts with 'contra' ({', '.join(self._labels.values())});"
            " pass labels={0: 'contradiction', ...}"
        )

    def _fingerprint(self) -> str:
        digest = hashlib.blake2b(repr(sorted(self._labels.items())).encode(), digest_size=4)
        for path in (self._model_file, self._tokenizer_file):
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "blake2b").digest())
        return digest.hexdigest()
