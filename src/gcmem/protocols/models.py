"""What reads and judges texts: encoders, oracles, classifiers, readers, language models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gcmem.types import (
    CandidateSet,
    Chunk,
    Claim,
    Conflict,
    JudgeKind,
    Prompt,
    Reading,
    Resolution,
)

if TYPE_CHECKING:
    from gcmem.protocols.ledger import FoundClaim

Vectors = NDArray[np.float32]
Progress = Callable[[int, int], None]
"""Called with (done, total) during long work."""


class Encoder(Protocol):
    """Turns texts into unit vectors; the same text always gives the same vector."""

    @property
    def id(self) -> str:
        """Name and version; a store records which encoder built it."""

    @property
    def dimensions(self) -> int:
        """The length of a vector."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Returns one L2-normalised row per text."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Returns the number of tokens of each text; ingest uses it to split long texts."""


@runtime_checkable
class QueryEncoder(Encoder, Protocol):
    """An encoder that treats questions differently from documents, with a prefix for example."""

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Returns one L2-normalised row per question; `encode` is then for documents only."""


class ConflictOracle(Protocol):
    """κ: finds the pairs of a candidate set that can't both be true now."""

    @property
    def id(self) -> str:
        """Name and version; stored with every verdict."""

    def judge(self, candidates: CandidateSet) -> tuple[Conflict, ...]:
        """Returns the conflicting pairs with their scores."""


class Ruling(NamedTuple):
    """How sure a judge is, from 0 to 1, that the newer claim ended the older one, and why."""

    score: float
    reason: str = ""


class Reads(NamedTuple):
    """Which claims near a new one a judge reads: at most so many, at least so similar."""

    most: int
    similarity: float


class ClaimDetector(Protocol):
    """Finds the claims of chunks: what asserts or shows a state that a later statement can end."""

    @property
    def id(self) -> str:
        """Name and version; stored with the claims."""

    def find(self, chunks: Sequence[Chunk]) -> list[list[FoundClaim]]:
        """Returns the claims of each chunk, in the order of its text."""


class ClaimJudge(Protocol):
    """Judges pairs of claims, ahead of any question or for one."""

    @property
    def id(self) -> str:
        """Names everything that decides a ruling: model, version, which pairs are read."""

    @property
    def kind(self) -> JudgeKind:
        """What kind of judge it is."""

    @property
    def reads(self) -> Reads:
        """Which claims near a new one it reads."""

    @property
    def sure(self) -> float:
        """From this score on, the older claim counts as outdated."""

    @property
    def likely(self) -> float:
        """From this score on, the older claim is doubtful."""

    @property
    def floor(self) -> float:
        """Rulings below this score are not kept."""

    def rule(self, pairs: Sequence[tuple[Claim, Claim]], *, question: str = "") -> Sequence[Ruling]:
        """Returns one ruling per (older, newer) pair."""


class CandidateResolver(Protocol):
    """Decides which candidates are still true; `gcmem.resolve.Resolver` implements it."""

    @property
    def oracle(self) -> ConflictOracle:
        """The oracle that finds the conflicts."""

    def resolve(self, candidates: CandidateSet) -> Resolution:
        """Splits the candidates into kept ones and those that a newer candidate contradicts."""


class PairClassifier(Protocol):
    """Scores single pairs; `gcmem.judge.PairwiseOracle` turns it into an oracle."""

    @property
    def id(self) -> str:
        """Name and version."""

    def score(self, question: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Returns, for each (older, newer) pair, how likely they contradict, from 0 to 1."""


@runtime_checkable
class QuickClassifier(PairClassifier, Protocol):
    """A pair classifier that can also estimate scores quickly, to select pairs for `score`."""

    def glance(self, question: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Returns a rough estimate of each pair's score."""


class StanceClassifier(Protocol):
    """Reads single chunks: which answer to a question does the chunk support?"""

    @property
    def id(self) -> str:
        """Name and version."""

    def stances(
        self, question: str, options: Sequence[str], texts: Sequence[str]
    ) -> list[tuple[float, ...]]:
        """Returns, for each text, the probability of each option; the last is that of none."""


class AnswerClassifier(Protocol):
    """Reads single texts: does the text answer a question?"""

    @property
    def id(self) -> str:
        """Name and version."""

    def answers(self, question: str, texts: Sequence[str]) -> list[float]:
        """Returns, for each text, how likely it answers the question, from 0 to 1."""


class Reader(Protocol):
    """Answers a question from chunks."""

    @property
    def id(self) -> str:
        """Name and version."""

    def read(self, prompts: Sequence[Prompt]) -> tuple[Reading, ...]:
        """Returns one reading per prompt."""


class ChatModel(Protocol):
    """A language model behind a chat endpoint, with structured output."""

    @property
    def id(self) -> str:
        """The model's name."""

    def complete(
        self, *, system: str, user: str, schema: dict[str, Any]
    ) -> tuple[dict[str, Any], int]:
        """Returns an object that follows `schema`, and the number of tokens used."""
