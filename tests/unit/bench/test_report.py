from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from gcmem.bench.data.shipped import shipped
from gcmem.bench.data.streams import Texts
from gcmem.bench.report.compare import compare_runs
from gcmem.bench.report.writing import disagreements, write_report
from gcmem.bench.run.grid import Grid
from gcmem.bench.run.runner import run_grid
from gcmem.protocols import ConflictOracle, ScoreCache
from gcmem.testing import HashEncoder, RuleOracle

TEXTS = Texts(HashEncoder(dimensions=64))
GRID = Grid(
    settings=("retrieval", "bag"),
    retrievals=("paper", "stratified"),
    readers=("majority",),
    oracles=("gold",),
    paths=("standard", "timestamp", "gcmem"),
    limit=4,
)


def no_oracle(name: str, cache: ScoreCache | None) -> ConflictOracle:
    return RuleOracle(lambda a, b: False)


def test_a_run_becomes_tables_figures_and_a_page(tmp_path: Path) -> None:
    done = run_grid(
        GRID, out=tmp_path, load=shipped, texts=TEXTS, readers={"majority": None},
        make_oracle=no_oracle,
    )  # fmt: skip
    written = write_report(done, tmp_path, load=shipped, texts=TEXTS, make_oracle=no_oracle)
    assert {path.suffix for path in written} == {".md", ".csv", ".tex", ".svg", ".png", ".html"}
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "chat-medium" in page
    told = list(disagreements(done, load=shipped, texts=TEXTS, make_oracle=no_oracle))
    assert told
    for item in told:
        assert item.answers["gcmem"] == item.instance.answer != item.answers["standard"]
        assert any(fate.status == "shadowed" and fate.witness for fate in item.fates)


def test_a_run_compared_with_itself_is_no_different(tmp_path: Path) -> None:
    grid = replace(GRID, settings=("bag",))
    first = run_grid(
        grid, out=tmp_path / "a", load=shipped, texts=TEXTS, readers={"majority": None},
        make_oracle=no_oracle,
    )  # fmt: skip
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    table = compare_runs(first, first)
    assert table is not None
    assert len(table.rows) == 3
