"""Groups outcomes into cells: conditions that differ only in path and oracle."""

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
    """A condition without path and oracle."""

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
        """Dataset, retrieval, k, reader and mode, as shown in tables."""
        return (self.dataset, *self.retrieval_and_k, self.reader, self.mode)

    @property
    def retrieval_and_k(self) -> tuple[str, str]:
        """Retrieval and k, as shown in tables."""
        return ("bag", "∞") if self.bag else (self.retrieval, str(self.k))

    @property
    def stm(self) -> str:
        """The paper's STM setting, "on" or "off"; empty if the paper has no such retrieval."""
        if self.bag or self.k != paper.K:
            return ""
        return {"dense": "off", "paper": "on"}.get(self.retrieval, "")

    @property
    def model(self) -> str:
        """The reader's name in the paper's spelling."""
        return paper.model_name(self.reader)

    @property
    def pool(self) -> str:
        """The datasets to average over: the paper's two chat datasets together, any other alone."""
        return "chat" if self.dataset in paper.POOLED else self.dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class CellOutcomes:
    """A cell with its outcomes by path, for one selected oracle."""

    cell: Cell
    paths: Mapping[Path, tuple[Outcome, ...]]
    oracle: str

    def of(self, path: str) -> tuple[Outcome, ...]:
        """Returns the outcomes of a path; for gcmem, those of the selected oracle."""
        return self.paths.get((path, self.oracle if path == "gcmem" else ""), ())

    def accuracy(self, path: str) -> float | None:
        """Returns the share of correct answers among those without an error."""
        return accuracy(self.of(path))

    def delta(self, path: str = "gcmem", *, base: str = "standard") -> float | None:
        """Returns a path's accuracy minus that of `base`, on the instances that both answered."""
        return paired_difference(self.of(base), self.of(path))

    def compared(self, path: str = "gcmem", *, base: str = "standard") -> Comparison | None:
        """Compares a path with `base` on the instances that both answered."""
        return compare_outcomes(self.of(base), self.of(path))

    def errors(self, *paths: str) -> int:
        """Returns the number of failed outcomes of the given paths."""
        return sum(bool(outcome.error) for path in paths for outcome in self.of(path))

    def shadows(self) -> float | None:
        """Returns the mean number of chunks that gcmem removed per instance."""
        return mean([outcome.shadows for outcome in answered(self.of("gcmem"))])


def cells(outcomes: Iterable[Outcome]) -> dict[Cell, dict[Path, tuple[Outcome, ...]]]:
    """Groups outcomes by cell and path, both sorted."""
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


def cell_outcomes(
    run: Run, *, bag: bool | None = None, need: Sequence[str] = ()
) -> list[CellOutcomes]:
    """Returns one entry per cell and oracle; the paths in `need` must have an answer."""
    found = []
    for cell, paths in cells(run.outcomes).items():
        if bag is not None and cell.bag is not bag:
            continue
        oracles = [oracle for path, oracle in paths if path == "gcmem"] or [""]
        for oracle in oracles:
            one = CellOutcomes(cell=cell, paths=paths, oracle=oracle)
            if all(answered(one.of(path)) for path in need):
                found.append(one)
    return found


def grouped(
    items: Iterable[CellOutcomes], key: Callable[[CellOutcomes], Key]
) -> Iterator[tuple[Key, list[CellOutcomes]]]:
    """Yields groups of items, sorted by key."""
    found: dict[Key, list[CellOutcomes]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    for name in sorted(found):
        yield name, found[name]


def mean_accuracy(items: Sequence[CellOutcomes], path: str) -> float | None:
    """Returns a path's mean accuracy over cells, with equal weights."""
    found = [item.accuracy(path) for item in items]
    return mean([value for value in found if value is not None])


def mean_delta(items: Sequence[CellOutcomes]) -> float | None:
    """Returns the mean ΔGC over cells."""
    found = [item.delta() for item in items]
    return mean([value for value in found if value is not None])


def pooled_as_in_paper(items: Sequence[CellOutcomes]) -> bool:
    """Returns whether a group has exactly the two datasets that the paper pools."""
    return {item.cell.dataset for item in items} == set(paper.POOLED)


def all_errors(items: Sequence[CellOutcomes], *paths: str) -> str:
    """Returns the number of failed outcomes of the given paths, as a table cell."""
    return str(sum(item.errors(*paths) for item in items))


def mean_shadows(items: Sequence[CellOutcomes]) -> float | None:
    """Returns the mean number of shadows per instance over cells."""
    found = [item.shadows() for item in items]
    return mean([value for value in found if value is not None])


def accuracy(outcomes: Sequence[Outcome]) -> float | None:
    """Returns the share of correct answers among those without an error."""
    return mean([outcome.correct for outcome in answered(outcomes)])


def oracle_label(oracle: str) -> str:
    """Returns an oracle's name as shown in tables."""
    return oracle or NONE
