"""Writes the report of a run: tables, figures, and an HTML page with both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from gcmem.bench.data.instances import Instance
from gcmem.bench.data.streams import Texts
from gcmem.bench.report.disagreements import Disagreement, Fate
from gcmem.bench.report.lift import GCMEM, STANDARD, main_oracle
from gcmem.bench.report.page import load_figures, write_page
from gcmem.bench.report.plots import PLOTS
from gcmem.bench.report.tables import RENDERERS, make_tables
from gcmem.bench.run.memories import BenchMemory, MakeOracle
from gcmem.bench.run.outcomes import Outcome, Run, answered
from gcmem.defaults import make_resolver

SHOWN = 8
"""Number of instances that the page shows turn by turn."""


def write_report(
    run: Run,
    out: Path,
    *,
    load: Callable[[str], Sequence[Instance]],
    texts: Texts,
    make_oracle: MakeOracle,
) -> list[Path]:
    """Writes tables in three formats, figures in two, and report.html; returns the paths."""
    written = []
    tables = make_tables(run)
    (out / "tables").mkdir(parents=True, exist_ok=True)
    for table in tables:
        for suffix, render in RENDERERS.items():
            path = out / "tables" / f"{table.name}.{suffix}"
            path.write_text(render(table), "utf-8")
            written.append(path)
    figures = [path for plot in PLOTS.values() for path in plot(run, out / "figures")]
    page = out / "report.html"
    write_page(
        page,
        run,
        tables=[
            (t.name, t.title, list(t.columns), [list(row) for row in t.rows], t.note)
            for t in tables
        ],
        figures=load_figures(figures),
        disagreements=list(disagreements(run, load=load, texts=texts, make_oracle=make_oracle)),
    )
    return [*written, *figures, page]


def disagreements(
    run: Run,
    *,
    load: Callable[[str], Sequence[Instance]],
    texts: Texts,
    make_oracle: MakeOracle,
    most: int = SHOWN,
) -> Iterator[Disagreement]:
    """Yields instances on which gcmem and standard RAG differ, judged again by the oracle."""
    oracle = main_oracle(run)
    cells: dict[tuple[str, ...], dict[str, Outcome]] = {}
    for outcome in answered(run.outcomes):
        c = outcome.condition
        if c.path != GCMEM or c.oracle == oracle:
            key = (c.dataset, outcome.instance, c.setting, c.retrieval, c.reader, c.mode, str(c.k))
            cells.setdefault(key, {})[c.path] = outcome
    seen: set[str] = set()
    for (dataset, instance_id, *_), paths in sorted(cells.items(), key=lambda cell: cell[0]):
        if len(seen) == most or not {GCMEM, STANDARD} <= paths.keys() or instance_id in seen:
            continue
        if paths[GCMEM].text == paths[STANDARD].text:
            continue
        instance = next((i for i in load(dataset) if i.id == instance_id), None)
        if instance is not None:
            seen.add(instance_id)
            yield _disagreement(instance, paths, texts, make_oracle)


def _disagreement(
    instance: Instance, paths: dict[str, Outcome], texts: Texts, make_oracle: MakeOracle
) -> Disagreement:
    condition = paths[GCMEM].condition
    memory = BenchMemory.of(instance, texts)
    try:
        candidates = memory.candidates(condition.setting, condition.retrieval, condition.k)
        oracle = memory.oracle(condition.oracle, make_oracle)
        resolution = make_resolver(oracle, require_qualified=False).resolve(candidates)
    finally:
        memory.close()
    turn_of = memory.turn_of
    fates = [
        Fate(
            turn=turn_of[s.candidate.chunk.id],
            status="shadowed",
            witness=turn_of[s.witness.chunk.id],
        )
        for s in resolution.shadows
    ]
    # Last, so that a turn with a kept chunk counts as kept.
    fates += [Fate(turn=turn_of[item.chunk.id], status="kept") for item in resolution.kept]
    return Disagreement(
        instance=instance,
        answers={path: outcome.choice or outcome.text for path, outcome in paths.items()},
        fates=tuple(fates),
        where=" · ".join((condition.dataset, condition.setting, condition.retrieval)),
    )
