"""Settings: frozen values with checked ranges. Nothing here reads the environment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import get_args

from gcmem.errors import InvalidInputError
from gcmem.types import ActOn, JudgeMode, Strategy, check_choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a Memory segments, retrieves and resolves; the defaults suit a chat agent."""

    chunk_tokens: int = 200
    """A turn longer than this is split at sentence boundaries."""
    max_text_chars: int = 2_000_000
    """A longer text is rejected."""
    max_metadata_bytes: int = 1_048_576
    """Maximum size of one message's metadata as JSON; every chunk of the message stores a copy."""
    max_future: timedelta | None = timedelta(days=1)
    """How far ahead of the clock an event time may be. A later time is rejected; a time within the
    limit is stored as now. None keeps every event time: a chunk dated ahead then wins over
    everything recorded until that day, so use None only with writers that you trust."""
    max_skew: timedelta | None = timedelta(minutes=5)
    """How far the clocks of two writers may disagree. Within this limit, what is said now comes
    after everything recorded before; beyond it, the order of their chunks counts as undecided.
    None trusts every clock."""
    strategy: Strategy = "stratified"
    """How candidates are found. `dense` takes the k most similar chunks. `paper` adds the recency
    buffer, as the paper does. `stratified` takes `overfetch` times k candidates: the most similar,
    the frontier and the recency buffer. On the frontier a chunk competes only with newer chunks,
    so the newest state of a topic is found however long the history is."""
    lexical_weight: float = 0.4
    """How much the words of a question count in `stratified`, against its meaning: 0 searches by
    meaning alone, 1 by words alone. The other strategies search by meaning."""
    frontier: int = 2
    """A chunk is on the frontier if fewer than this many newer chunks are at least as similar."""
    stm_size: int = 10
    """Size of the recency buffer: chunks per scope."""
    overfetch: int = 3
    """`stratified` takes this many times k candidates, so that k remain after some are removed."""

    judge: JudgeMode = "background"
    """When new claims are judged. `background`: in a thread of this process, as soon as they are
    added. `manual`: by `Memory.judge` or `gcmem judge`. Searches use what has been judged."""
    judge_budget_ms: int = 100
    """How long a search may judge what nobody has judged yet; the rest is marked as unjudged."""
    act_on: ActOn = "sure"
    """Which verdicts leave a claim out: `sure` ones, or `likely` ones too. Other doubtful claims
    are kept and marked."""
    sure: float | None = None
    """From this score on a verdict is sure; by default the judge's own threshold."""
    neighbours: int = 20
    """How many of the nearest earlier chunks a new claim is compared with."""
    respect_trust: bool = False
    """If True, a chunk can't shadow a chunk of higher trust."""

    def __post_init__(self) -> None:
        for name, least in (
            ("chunk_tokens", 8),
            ("max_text_chars", 1),
            ("max_metadata_bytes", 2),
            ("frontier", 1),
            ("stm_size", 0),
            ("overfetch", 1),
            ("judge_budget_ms", 0),
            ("neighbours", 1),
        ):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise InvalidInputError(f"{name}={value!r}: pass a whole number from {least}")
        for name in ("max_future", "max_skew"):
            value = getattr(self, name)
            if value is None or (isinstance(value, timedelta) and value >= timedelta(0)):
                continue
            raise InvalidInputError(f"{name}={value!r}: pass a duration from 0, or None")
        if (
            isinstance(self.lexical_weight, bool)
            or not isinstance(self.lexical_weight, (int, float))
            or not 0 <= self.lexical_weight <= 1
        ):
            raise InvalidInputError(
                f"lexical_weight={self.lexical_weight!r}: pass a number from 0 to 1"
            )
        if self.sure is not None and (
            isinstance(self.sure, bool)
            or not isinstance(self.sure, (int, float))
            or not 0 <= self.sure <= 1
        ):
            raise InvalidInputError(f"sure={self.sure!r}: pass a number from 0 to 1, or None")
        if not isinstance(self.respect_trust, bool):
            raise InvalidInputError(f"respect_trust={self.respect_trust!r}: pass True or False")
        check_choice(self.judge, name="judge", allowed=get_args(JudgeMode))
        check_choice(self.act_on, name="act_on", allowed=get_args(ActOn))
        check_choice(self.strategy, name="strategy", allowed=get_args(Strategy))
