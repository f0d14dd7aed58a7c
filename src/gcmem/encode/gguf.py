"""Any GGUF embedding model, run by llama.cpp through the package xllamacpp."""

from __future__ import annotations

import http.client
import json
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from gcmem import deadline
from gcmem.encode.identity import model_id
from gcmem.errors import EncoderError, InvalidInputError, MissingExtraError
from gcmem.protocols import Vectors

Pooling = Literal["mean", "cls", "last"]
TIMEOUT_S = 60


class GGUFEncoder:
    """An embedding model in a GGUF file, such as nomic-embed-text; needs the extra `gguf`.

    llama.cpp listens on a port of the loopback address while the encoder lives; a random key
    closes it to other programs.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        query_prefix: str = "",
        document_prefix: str = "",
        pooling: Pooling | None = None,
        max_tokens: int = 512,
        name: str | None = None,
        threads: int = 2,
    ) -> None:
        """`pooling` is by default what the file says; `name` replaces the file's name in the id."""
        if pooling is not None and pooling not in get_args(Pooling):
            raise InvalidInputError(f"pooling={pooling!r}: choose mean, cls or last")
        if max_tokens < 8:
            raise InvalidInputError(f"max_tokens={max_tokens}: at least 8")
        file = Path(path).expanduser()
        if not file.is_file():
            raise InvalidInputError(f"there is no file {file}")
        self._max_tokens = max_tokens
        self._prefixes = query_prefix, document_prefix
        self._key = secrets.token_urlsafe()
        self._server = _start(
            file, pooling=pooling, max_tokens=max_tokens, threads=threads, key=self._key
        )
        self._address: str = self._server.listening_address.removeprefix("http://")
        self.id = model_id(
            "gguf",
            name or file.stem,
            [file],
            pooling=pooling or "",
            max_tokens=max_tokens,
            query_prefix=query_prefix,
            document_prefix=document_prefix,
        )
        try:
            self.dimensions = len(self._embed(self._tokens("a", special=True)))
        except EncoderError as error:
            hint = "" if pooling else "; if it does not say how to pool, pass pooling='mean'"
            raise InvalidInputError(f"{file} can't embed texts{hint} ({error.reason})") from None

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Returns one unit vector per document; ignores everything after `max_tokens` tokens."""
        return self._encode(self._prefixes[1], texts)

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Returns one unit vector per question."""
        return self._encode(self._prefixes[0], texts)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Returns each text's token count, without prefix and special tokens."""
        return [len(self._tokens(text, special=False)) for text in texts]

    def _encode(self, prefix: str, texts: Sequence[str]) -> Vectors:
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for number, text in enumerate(texts):
            with deadline.step():
                tokens = self._tokens(prefix + text, special=True)
                if len(tokens) > self._max_tokens:
                    # The last token may be the end marker, which some models pool by.
                    tokens = tokens[: self._max_tokens - 1] + tokens[-1:]
                vectors[number] = self._embed(tokens)
        return vectors

    def _embed(self, tokens: list[int]) -> list[float]:
        reply = self._server.handle_embeddings({"input": [tokens]})
        if "error" in reply:
            raise EncoderError(self.id, f"failed: {reply['error'].get('message')}")
        found: list[float] = reply["data"][0]["embedding"]
        return found

    def _tokens(self, text: str, *, special: bool) -> list[int]:
        """Returns the model's tokens; only llama.cpp's HTTP interface has them."""
        connection = http.client.HTTPConnection(self._address, timeout=TIMEOUT_S)
        try:
            connection.request(
                "POST",
                "/tokenize",
                json.dumps({"content": text, "add_special": special}),
                {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"},
            )
            response = connection.getresponse()
            body = json.loads(response.read())
        finally:
            connection.close()
        if response.status != 200:
            raise EncoderError(self.id, f"can't count tokens: {body.get('error')}")
        tokens: list[int] = body["tokens"]
        return tokens


def _start(path: Path, *, pooling: Pooling | None, max_tokens: int, threads: int, key: str) -> Any:
    """Returns a running llama.cpp server that answers only those who have the key."""
    try:
        import xllamacpp
    except ImportError:
        raise MissingExtraError("gguf", package="xllamacpp") from None
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.embedding = True
    if pooling is not None:
        kinds = xllamacpp.llama_pooling_type
        params.pooling_type = getattr(kinds, f"LLAMA_POOLING_TYPE_{pooling.upper()}")
    # A text must fit into one physical batch.
    params.n_ctx = params.n_batch = params.n_ubatch = max_tokens
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.verbosity = 0
    params.warmup = False
    params.port = 0
    params.api_keys = [key]
    params.endpoint_slots = params.endpoint_props = params.endpoint_metrics = params.ui = False
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise InvalidInputError(f"can't load {path} as a GGUF model: {error}") from None
