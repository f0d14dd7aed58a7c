from __future__ import annotations

import json
from pathlib import Path

from tests.unit.bench.test_datasets import locomo_row, write_json
from tests.unit.cli.test_commands import gcmem


def test_datasets_are_described_built_and_paired(tmp_path: Path) -> None:
    (about,) = json.loads(gcmem("bench", "data", "stats", "chat-medium", "--json"))
    assert (about["instances"], about["turns"]) == (48, 2033)
    built = tmp_path / "medium.jsonl"
    gcmem("bench", "data", "build", "chat-medium", "--out", str(built))
    assert len(built.read_text("utf-8").splitlines()) == 48
    gcmem("bench", "data", "pairs", str(built), "--out", str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {
        "medium.jsonl", "medium_pairs.jsonl", "medium_sets.jsonl",
    }  # fmt: skip
    assert "no dataset" in gcmem("bench", "data", "build", "tiny", "--out", "x", code=2)


def test_a_run_is_reported_and_compared(tmp_path: Path) -> None:
    run = ("bench", "run", "--preset", "quick", "--limit", "1", "--reader", "majority",
           "--oracle", "gold", "--out", str(tmp_path))  # fmt: skip
    assert "100.0%" in gcmem(*run)
    results = (tmp_path / "results.jsonl").read_text("utf-8")
    gcmem(*run)
    assert (tmp_path / "results.jsonl").read_text("utf-8") == results
    assert "report.html" in gcmem("bench", "report", str(tmp_path))
    assert "chat-medium" in gcmem("bench", "compare", str(tmp_path), str(tmp_path))
    assert "reader 'magic'" in gcmem("bench", "run", "--reader", "magic", "--out", "x", code=2)
    assert "is not a run" in gcmem("bench", "report", str(tmp_path / "none"), code=2)


def test_judge_judges_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    gcmem("add", "I live in Porto.", "--at", "2025-01-01T00:00:00Z", path=path)
    gcmem("add", "I live in Lyon.", "--at", "2025-02-01T00:00:00Z", path=path)
    assert json.loads(gcmem("judge", "--json", path=path)) == {"judged": 2, "conflicts": 1}
    assert json.loads(gcmem("judge", "--json", path=path)) == {"judged": 0, "conflicts": 0}


def test_retrieval_is_measured_printed_and_written(tmp_path: Path) -> None:
    rows = [locomo_row(), locomo_row(sample_id="conv-2")]
    named = f"locomo={write_json(tmp_path / 'locomo.json', rows)}"
    page = tmp_path / "made" / "page.md"
    shown = gcmem("bench", "retrieval", "--dataset", named, "--output", str(page))
    assert "locomo: evidence found" in shown
    assert "| single-hop | 2 |" in shown
    assert page.read_text("utf-8").strip() == shown.strip()
    written = tmp_path / "found.json"
    (found,) = json.loads(
        gcmem("bench", "retrieval", "--dataset", named, "--questions", "3", "--seed", "5",
              "--json", "--output", str(written))
    )  # fmt: skip
    assert (found["dataset"], found["seed"]) == ("locomo", 5)
    assert {row["n"] for row in found["rows"]} == {3}
    assert found["rows"][0]["recall@20"] == 1
    assert [r["row"] for r in json.loads(written.read_text("utf-8"))[0]["rows"]] == [
        row["row"] for row in found["rows"]
    ]
    assert "locomo=PATH" in gcmem("bench", "retrieval", "--dataset", "trivia=x", code=2)
    assert "no Memora data" in gcmem("bench", "retrieval", "--dataset", "memora=nowhere", code=2)
