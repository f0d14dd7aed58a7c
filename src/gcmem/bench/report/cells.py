"""The cells of a run: what was asked in the same way, so that its paths can be compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from gcmem.bench.report import paper
from gcmem.bench.report.statistics import Comparison, compare_outcomes, paired_difference
from gcmem.bench.report.table import NONE, mean
from gcmem.bench.run.outcomes import Condition, Outcome, Run, answered

Key = TypeVar("Key", bound=tuple[str, ...])
Path = tuple[str, str]
"""A path and its oracle."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Cell:
    """A condition but for path and oracle."""

    dataset: str
    setting: str
    retrieval: str
    reader: str
    mode: str
    k: int

    @property
    def bag(self) -> bool:
        """Whether every chunk is a candidate."""
        return self.setting == "bag"

    @property
    def labels(self) -> tuple[str, str, str, str, str]:
        """Dataset, retrieval, k, reader and mode, as a table shows them."""
        return (self.dataset, *self.way, self.reader, self.mode)

    @property
    def way(self) -> tuple[str, str]:
        """The way to the candidates: retrieval and k."""
        return ("bag", "∞") if self.bag else (self.retrieval, str(self.k))

    @property
    def stm(self) -> str:
        """Whether the paper would say STM is on or off; empty where it has no such way."""
        if self.bag or self.k != paper.K:
            return ""
        return {"dense": "off", "paper": "on"}.get(self.retrieval, "")

    @property
    def model(self) -> str:
        """The reader as the paper writes it."""
        return paper.model_name(self.reader)

    @property
    def pool(self) -> str:
        """The datasets it is averaged with: the two of the paper together, any other alone."""
        return "chat" if self.dataset in paper.POOLED else self.dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A cell with its outcomes by path, and one of gcmem's oracles picked."""

    cell: Cell
    paths: Mapping[Path, tuple[Outcome, ...]]
    oracle: str

    def of(self, path: str) -> tuple[Outcome, ...]:
        """Returns the outcomes of a path; gcmem's are those of the picked oracle."""
        return self.paths.get((path, self.oracle if path == "gcmem" else ""), ())

    def accuracy(self, path: str) -> float | None:
        """Returns the share of correct answers among those without an error."""
        return accuracy(self.of(path))

    def delta(self, path: str = "gcmem", *, base: str = "standard") -> float | None:
        """Returns how much more accurate a path is than another on the instances of both."""
        return paired_difference(self.of(base), self.of(path))

    def compared(self, path: str = "gcmem", *, base: str = "standard") -> Comparison | None:
        """Compares a path with another on the instances of both."""
        return compare_outcomes(self.of(base), self.of(path))

    def errors(self, *paths: str) -> int:
        """Counts the outcomes of some paths that failed."""
        return sum(bool(outcome.error) for path in paths for outcome in self.of(path))

    def shadows(self) -> float | None:
        """Returns how many chunks gcmem removed an instance."""
        return mean([outcome.shadows for outcome in answered(self.of("gcmem"))])


def cells(outcomes: Iterable[Outcome]) -> dict[Cell, dict[Path, tuple[Outcome, ...]]]:
    """Groups outcomes into cells and paths, both sorted."""
    found: dict[Cell, dict[Path, list[Outcome]]] = {}
    for outcome in outcomes:
        condition = outcome.condition
        path = (condition.path, condition.oracle)
        found.setdefault(cell_of(condition), {}).setdefault(path, []).append(outcome)
    return {
        cell: {path: tuple(found[cell][path]) for path in sorted(found[cell])}
        for cell in sorted(found)
    }


def cell_of(condition: Condition) -> Cell:
    """Returns the cell of a condition."""
    return Cell(
        dataset=condition.dataset,
        setting=condition.setting,
        retrieval=condition.retrieval,
        reader=condition.reader,
        mode=condition.mode,
        k=condition.k,
    )


def asked(run: Run, *, bag: bool | None = None, need: Sequence[str] = ()) -> list[Asked]:
    """Returns every cell once an oracle; `need` names paths that must have an answer."""
    found = []
    for cell, paths in cells(run.outcomes).items():
        if bag is not None and cell.bag is not bag:
            continue
        oracles = [oracle for path, oracle in paths if path == "gcmem"] or [""]
        for oracle in oracles:
            one = Asked(cell=cell, paths=paths, oracle=oracle)
            if all(answered(one.of(path)) for path in need):
                found.append(one)
    return found


def grouped(
    items: Iterable[Asked], key: Callable[[Asked], Key]
) -> Iterator[tuple[Key, list[Asked]]]:
    """Yields the items by key, sorted."""
    found: dict[Key, list[Asked]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    for name in sorted(found):
        yield name, found[name]


def mean_accuracy(items: Sequence[Asked], path: str) -> float | None:
    """Returns the mean over cells of a path's accuracy, every cell weighing the same."""
    found = [item.accuracy(path) for item in items]
    return mean([value for value in found if value is not None])


def mean_delta(items: Sequence[Asked]) -> float | None:
    """Returns the mean over cells of ΔGC."""
    found = [item.delta() for item in items]
    return mean([value for value in found if value is not None])


def pooled_as_in_paper(items: Sequence[Asked]) -> bool:
    """Says whether a group holds both of the datasets that the paper pools, and no other."""
    return {item.cell.dataset for item in items} == set(paper.POOLED)


def all_errors(items: Sequence[Asked], *paths: str) -> str:
    """Returns the count of failed outcomes of some paths, as a cell."""
    return str(sum(item.errors(*paths) for item in items))


def mean_shadows(items: Sequence[Asked]) -> float | None:
    """Returns the mean over cells of the shadows an instance."""
    found = [item.shadows() for item in items]
    return mean([value for value in found if value is not None])


def accuracy(outcomes: Sequence[Outcome]) -> float | None:
    """Returns the share of correct answers among those without an error."""
    return mean([outcome.correct for outcome in answered(outcomes)])


def shown(oracle: str) -> str:
    """Returns an oracle's name for a table."""
    return oracle or NONE
