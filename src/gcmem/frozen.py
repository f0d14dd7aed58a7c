"""A dict that can't be changed, for frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from gcmem.errors import InvalidInputError


class FrozenDict(dict[str, Any]):
    """A dict that can't be changed; it keeps frozen values frozen."""

    def _refuse(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise TypeError("this mapping belongs to a frozen value; copy it with dict(...) to edit it")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[FrozenDict], tuple[dict[str, Any]]]:
        return FrozenDict, (dict(self),)


def frozen(metadata: Mapping[str, Any] | None) -> FrozenDict:
    """Returns a copy of the metadata that can't be changed; None becomes an empty one."""
    if metadata is None:
        return FrozenDict()
    if not isinstance(metadata, Mapping):
        raise InvalidInputError(f"metadata={metadata!r}: pass a mapping, or None")
    return FrozenDict(metadata)
