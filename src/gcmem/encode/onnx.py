"""Any sentence-embedding model exported to ONNX."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from gcmem import deadline
from gcmem.encode.identity import model_id
from gcmem.errors import InvalidInputError
from gcmem.onnx_models import open_model, open_tokenizer
from gcmem.protocols import Vectors

Pooling = Literal["mean", "cls"]

MODEL, TOKENIZER = "model.onnx", "tokenizer.json"
EXTERNAL_DATA = ("model.onnx_data", "model.onnx.data")
"""The usual names of the weights of models that keep them beside the graph."""
POOLED_OUTPUT = "sentence_embedding"
INTEGERS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}


class OnnxSentenceModel:
    """Runs the ONNX model and tokenizer in a folder; loaded at first use.

    It runs each text separately: int8 activations are scaled over the whole input, so in a batch a
    text's vector would depend on its neighbours. On a CPU, a batch would be no faster.
    """

    def __init__(
        self, folder: Path, *, pooling: Pooling = "mean", max_tokens: int, workers: int
    ) -> None:
        """`workers` is the number of texts encoded at once, each on one core."""
        self._folder = folder
        self._pooling = pooling
        self._max_tokens = max_tokens
        self._workers = workers
        self._lock = threading.Lock()
        self._session: Any = None
        self._tokenizer: Any = None
        self._inputs: dict[str, Any] = {}
        self._output: str | None = None
        self._length: int | None = None
        """The number of tokens of every input, if the model was exported with a fixed one."""
        self._pad_id = 0

    def load(self) -> None:
        """Opens the model, unless it is open."""
        with self._lock:
            if self._session is not None:
                return
            tokenizer = open_tokenizer(self._folder / TOKENIZER)
            session = open_model(self._folder / MODEL, threads=1)
            width = session.get_inputs()[0].shape[-1]
            self._length = width if isinstance(width, int) else None
            self._pad_id = (tokenizer.padding or {}).get("pad_id", 0)
            tokenizer.enable_truncation(min(self._max_tokens, self._length or self._max_tokens))
            tokenizer.no_padding()
            self._inputs = {put.name: INTEGERS.get(put.type) for put in session.get_inputs()}
            outputs = [put.name for put in session.get_outputs()]
            self._output = POOLED_OUTPUT if POOLED_OUTPUT in outputs else outputs[0]
            self._tokenizer, self._session = tokenizer, session

    def encode(self, texts: Sequence[str], *, dimensions: int) -> Vectors:
        """Returns one unit vector per text; ignores everything after `max_tokens` tokens."""
        self.load()
        vectors = np.empty((len(texts), dimensions), dtype=np.float32)
        rows = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        if len(rows) < 2:  # for a single question, a thread pool would only cost time
            with deadline.step():
                found = [self.vector(row) for row in rows]
        else:
            found = deadline.map_in_threads(self.vector, rows, workers=self._workers)
        for number, vector in enumerate(found):
            vectors[number] = vector
        return vectors

    def probe(self) -> int:
        """Returns the length of a vector. Raises if the model does not embed sentences."""
        self.load()
        known = {"input_ids", "attention_mask", "token_type_ids"}
        if "input_ids" not in self._inputs or not self._inputs.keys() <= known:
            raise InvalidInputError(
                f"{self._folder / MODEL} wants the inputs {', '.join(self._inputs)}; a sentence "
                f"encoder has input_ids, and perhaps attention_mask and token_type_ids"
            )
        vector = self.vector(self._tokenizer.encode("a").ids)
        if vector.ndim != 1:
            raise InvalidInputError(
                f"{self._folder / MODEL} returns an array of shape {vector.shape} per text, not a "
                "vector; export it as a sentence encoder (feature extraction)"
            )
        return len(vector)

    def vector(self, row: list[int]) -> Any:
        """Returns the unit vector of a row of token ids."""
        ids = np.full((1, self._length or len(row)), self._pad_id, dtype=np.int64)
        mask = np.zeros_like(ids)
        ids[0, : len(row)], mask[0, : len(row)] = row, 1
        values = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
        }
        inputs = {name: values[name].astype(dtype) for name, dtype in self._inputs.items()}
        found = self._session.run([self._output], inputs)[0][0].astype(np.float32)
        if found.ndim == 1:  # the model pools by itself
            pooled = found
        else:
            pooled = found[: len(row)].mean(axis=0) if self._pooling == "mean" else found[0]
        norm = np.linalg.norm(pooled)
        # A model that returns unit vectors keeps them to the last bit.
        return pooled if abs(norm - 1) < 1e-6 else pooled / max(norm, 1e-12)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Returns each text's token count, beyond `max_tokens` too, without special tokens."""
        self.load()
        return [
            len(encoding.ids) + sum(len(rest.ids) for rest in encoding.overflowing)
            for encoding in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        ]


class OnnxEncoder:
    """A sentence encoder from a folder with `model.onnx` and `tokenizer.json`.

    The id names the model's digest and all settings, so that a store notices a change.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        query_prefix: str = "",
        document_prefix: str = "",
        pooling: Pooling = "mean",
        max_tokens: int = 256,
        name: str | None = None,
        workers: int = 2,
    ) -> None:
        """`pooling` is ignored if the model pools by itself; `name` replaces the folder's name.

        `workers` is the number of texts encoded at once, each on one core.
        """
        if pooling not in get_args(Pooling):
            raise InvalidInputError(f"pooling={pooling!r}: choose mean or cls")
        if max_tokens < 8:
            raise InvalidInputError(f"max_tokens={max_tokens}: at least 8")
        place = Path(folder).expanduser()
        for file in (MODEL, TOKENIZER):
            if not (place / file).is_file():
                raise InvalidInputError(f"there is no {file} in {place}")
        extra = [place / data for data in EXTERNAL_DATA if (place / data).is_file()]
        self.id = model_id(
            "onnx",
            name or place.resolve().name,
            [place / MODEL, place / TOKENIZER, *extra],
            pooling=pooling,
            max_tokens=max_tokens,
            query_prefix=query_prefix,
            document_prefix=document_prefix,
        )
        self._prefixes = query_prefix, document_prefix
        self._model = OnnxSentenceModel(
            place, pooling=pooling, max_tokens=max_tokens, workers=workers
        )
        try:
            self.dimensions = self._model.probe()
        except InvalidInputError:
            raise
        except Exception as error:  # onnxruntime and tokenizers raise their own kinds
            raise InvalidInputError(f"can't run the model in {place}: {error}") from error

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Returns one unit vector per document; ignores everything after `max_tokens` tokens."""
        return self._encode(self._prefixes[1], texts)

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Returns one unit vector per question."""
        return self._encode(self._prefixes[0], texts)

    def _encode(self, prefix: str, texts: Sequence[str]) -> Vectors:
        return self._model.encode([prefix + text for text in texts], dimensions=self.dimensions)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Returns each text's token count, without prefix and special tokens."""
        return self._model.count_tokens(texts)
