"""The default settings of the product, as the benchmark names them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from gcmem.defaults import default_classifier, default_oracle
from gcmem.memory import Memory
from gcmem.settings import Settings

FIELDS = ("retrieval", "k", "reader", "mode", "path", "oracle")


def product_defaults() -> dict[str, Any]:
    """Returns what `Memory().ask(…)` uses, by the fields of a condition, and the oracle's id."""
    ask = inspect.signature(Memory.ask).parameters
    return {
        "setting": "retrieval",
        "retrieval": Settings().strategy,
        "k": ask["k"].default,
        "reader": "local",
        "mode": ask["mode"].default,
        "path": ask["path"].default,
        "oracle": "local",
        "oracle_id": default_oracle().id,
        "threshold": default_classifier().threshold,
    }


def describe_defaults(defaults: Mapping[str, Any], fields: Iterable[str] = FIELDS) -> str:
    """Returns the defaults as a line such as "retrieval stratified, k 10"."""
    oracle = f" ({defaults['oracle_id']}, threshold {defaults['threshold']:g})"
    return ", ".join(
        f"{field} {defaults[field]}{oracle if field == 'oracle' else ''}" for field in fields
    )
