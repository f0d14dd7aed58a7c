"""What the corpus checks say: errors, warnings and statistics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Report:
    """What the checks found."""

    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    stats: dict[str, Any] = field(default_factory=dict)

    def add(self, other: Report) -> None:
        """Takes over everything that another report holds."""
        self.errors += other.errors
        self.warnings += other.warnings
        self.stats |= other.stats


def share(part: int, whole: int) -> float:
    """Returns a share rounded to four places, 0 of nothing."""
    return round(part / whole, 4) if whole else 0.0
