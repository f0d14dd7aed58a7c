"""The encoders that the command line and the servers can name."""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl

from gcmem.defaults import default_encoder
from gcmem.encode import CachedEncoder, GGUFEncoder, MultilingualEncoder, OnnxEncoder
from gcmem.errors import InvalidInputError
from gcmem.protocols import Encoder

SETTINGS = ("query_prefix", "document_prefix", "pooling", "max_tokens")


@lru_cache(maxsize=4)
def encoder_named(name: str) -> Encoder:
    """Returns the encoder, loaded once: local, multilingual, onnx:FOLDER or gguf:FILE.

    The last two take settings as in a URL: gguf:FILE?query_prefix=query: &pooling=mean.
    """
    kind, colon, rest = name.partition(":")
    if kind == "local" and not colon:
        return default_encoder()
    if kind == "multilingual" and not colon:
        return CachedEncoder(MultilingualEncoder())
    path, _, query = rest.partition("?")
    if kind == "onnx" and path:
        return CachedEncoder(OnnxEncoder(path, **_settings(name, query)))
    if kind == "gguf" and path:
        return CachedEncoder(GGUFEncoder(path, **_settings(name, query)))
    raise InvalidInputError(
        f"encoder {name}: write local, multilingual, onnx:FOLDER or gguf:FILE, the last two "
        "perhaps with ?query_prefix=…&document_prefix=…"
    )


def _settings(name: str, query: str) -> dict[str, Any]:
    """Reads the settings after the question mark."""
    found: dict[str, Any] = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := sorted(found.keys() - set(SETTINGS)):
        raise InvalidInputError(
            f"encoder {name}: {', '.join(unknown)} is not a setting; there are "
            f"{', '.join(SETTINGS)}"
        )
    if "max_tokens" in found:
        try:
            found["max_tokens"] = int(found["max_tokens"])
        except ValueError:
            raise InvalidInputError(f"encoder {name}: max_tokens is not a number") from None
    return found
