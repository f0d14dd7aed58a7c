"""Talks to OpenAI-compatible endpoints. No other module does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gcmem import deadline
from gcmem.errors import (
    MissingExtraError,
    ModelAuthenticationError,
    ModelError,
    ModelNotFoundError,
    ModelResponseError,
    ModelUnavailableError,
)

NO_KEY = "no-key"
"""Sent to servers that need no key; the client refuses to start without one."""


def openai_client(
    *, api_key: str | None, base_url: str | None, timeout_s: float, max_retries: int
) -> Any:
    """Returns a client of the `openai` package. Raises `MissingExtraError` without it."""
    try:
        import openai
    except ImportError:
        raise MissingExtraError("llm", package="openai") from None
    key = api_key or (NO_KEY if base_url else None)
    try:
        return openai.OpenAI(
            api_key=key, base_url=base_url, timeout=timeout_s, max_retries=max_retries
        )
    except openai.OpenAIError as error:
        raise ModelAuthenticationError(
            f"no API key: set OPENAI_API_KEY or pass api_key=... ({error})"
        ) from None


@contextmanager
def translated_errors(client: Any) -> Iterator[None]:
    """Turns the client's errors into gcmem's, which say what to do."""
    import openai

    where = str(client.base_url)
    try:
        yield
    except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
        raise ModelAuthenticationError(
            f"{where} rejected the API key (HTTP {error.status_code}); check the key"
        ) from error
    except openai.APITimeoutError as error:
        raise ModelUnavailableError(f"{where} did not answer in time; raise timeout_s") from error
    except openai.APIConnectionError as error:
        raise ModelUnavailableError(
            f"can't reach {where}; is the server running and the base URL right?"
        ) from error
    except openai.RateLimitError as error:
        raise ModelUnavailableError(f"{where} is over its rate limit or quota: {error}") from error
    except openai.NotFoundError as error:
        raise ModelNotFoundError(f"{where} has no such model or path: {error}") from error
    except openai.APIStatusError as error:
        kind = ModelUnavailableError if error.status_code >= 500 else ModelError
        raise kind(f"{where} answered HTTP {error.status_code}: {error}") from error


class OpenAIChat:
    """A chat model behind any OpenAI-compatible base URL, with structured output.

    The client retries connection errors, rate limits and 5xx with backoff. A reply that does not
    follow the schema is requested again; the third one raises.
    """

    def __init__(
        self,
        *,
        model: str,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout_s: float = 60.0,
        max_retries: int = 3,
        temperature: float | None = 0.0,
        max_tokens: int = 512,
    ) -> None:
        self._client: Any = openai_client(
            api_key=api_key, base_url=base_url, timeout_s=timeout_s, max_retries=max_retries
        )
        self._timeout_s = timeout_s
        self._temperature = temperature
        self._max_tokens = max_tokens
        self._malformed_retries = 2
        self.id = model

    def complete(
        self, *, system: str, user: str, schema: dict[str, Any]
    ) -> tuple[dict[str, Any], int]:
        """Returns an object that follows `schema`, and the tokens that all attempts used."""
        tokens = 0
        content = ""
        for _ in range(self._malformed_retries + 1):
            response = self._request(system, user, schema)
            tokens += response.usage.total_tokens if response.usage else 0
            content = response.choices[0].message.content or "" if response.choices else ""
            parsed = _parse(content, schema)
            if parsed is not None:
                return parsed, tokens
        raise ModelResponseError(
            f"{self.id} did not follow the requested schema: {content[:200]!r}", tokens=tokens
        )

    def close(self) -> None:
        """Closes the connections; also done at the end of a `with` block."""
        self._client.close()

    def __enter__(self) -> OpenAIChat:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _request(self, system: str, user: str, schema: dict[str, Any]) -> Any:
        options: dict[str, Any] = {}
        if self._temperature is not None:
            options["temperature"] = self._temperature
        if (limit := deadline.current()) is not None:
            limit.check()
            options["timeout"] = min(self._timeout_s, limit.left_s)
        with translated_errors(self._client):
            return self._client.chat.completions.create(
                model=self.id,
                messages=[
                    {"role": "system", "content": system},
                    {"role": "user", "content": user},
                ],
                max_completion_tokens=self._max_tokens,
                response_format={
                    "type": "json_schema",
                    "json_schema": {"name": "reply", "strict": True, "schema": schema},
                },
                **options,
            )


def _parse(content: str, schema: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the reply as an object that follows the schema, or None."""
    try:
        parsed: dict[str, Any] = json.loads(content)
    except (ValueError, RecursionError):  # a model may nest deeper than the parser allows
        return None
    return parsed if _follows(parsed, schema) else None


TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}


def _follows(value: Any, schema: dict[str, Any]) -> bool:
    """Checks the schema keywords that gcmem uses: type, enum, items, properties, required."""
    kind = schema["type"]
    if not isinstance(value, TYPES[kind]):
        return False
    if isinstance(value, bool) and kind != "boolean":  # in Python, True is an int
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if kind == "array":
        return all(_follows(item, schema["items"]) for item in value)
    if kind == "object":
        properties = schema["properties"]
        return all(
            key in value and _follows(value[key], properties[key]) for key in schema["required"]
        )
    return True
