"""gcmem export, import and migrate, run as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

from gcmem import Memory
from tests.unit.cli.test_commands import gcmem

SKEWED = """\
{"id": "1", "text": "I live in Porto.", "at": "2026-01-01T11:00:00Z", "recorded_at": "2026-01-01T11:00:00Z"}
{"id": "2", "text": "I no longer live in Porto, I live in Lyon now.", "at": "2026-01-01T10:10:00Z", "recorded_at": "2026-01-01T10:10:00Z"}
"""  # noqa: E501


def test_a_store_goes_out_comes_back_and_moves_on(tmp_path: Path) -> None:
    old, new, third = (tmp_path / name for name in ("old.db", "new.db", "third.db"))
    gcmem("add", "I live in Porto.", "My cat is called Rui.", "--user", "ana", path=old)
    for name in ("a.jsonl.gz", "a.parquet"):
        file = str(tmp_path / name)
        done = json.loads(gcmem("export", file, "--vectors", "--json", path=old))
        assert (done["chunks"], done["resumed_from"]) == (2, 0)
        shown = gcmem("import", file, path=new)
        assert "Verified: 2 chunks" in shown
        assert done["digest"] in shown
    moved = json.loads(gcmem("migrate", str(new), str(third), "--json"))
    assert (moved["copied"]["added"], moved["copied"]["embedded"]) == (2, 0)
    assert "Not verified" in gcmem("migrate", str(new), str(third), "--no-verify")
    assert json.loads(gcmem("history", "--json", path=third)) == json.loads(
        gcmem("history", "--json", path=old)
    )


def test_search_says_where_clocks_are_to_blame(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(SKEWED)
    gcmem("import", str(rows), path=tmp_path / "m.db")
    for mode in ("drop", "annotate"):
        shown = gcmem("search", "Where do I live?", "--mode", mode, path=tmp_path / "m.db")
        assert "writers' clocks disagree, by 0:50:00 or more" in shown
    found = json.loads(gcmem("search", "Where do I live?", "--json", path=tmp_path / "m.db"))
    assert len(found["kept"]) == 2
    assert found["skewed"][0]["disagreement_s"] == 3000


def test_mistakes_are_told_in_one_line(tmp_path: Path) -> None:
    path, rows = tmp_path / "m.db", tmp_path / "rows.jsonl"
    rows.write_text('{"text": "tea", "at": "2026-01-01T00:00:00Z"}\n{"text": "no time"}\n')
    for arguments, said in (
        (["import", str(tmp_path / "none.jsonl")], "no file at"),
        (["export", str(tmp_path / "a.jsonl")], "no store at"),
        (["export", str(tmp_path / "a.jsonl"), "--format", "xml"], "jsonl, parquet"),
        (["import", str(rows), "--from", "zep"], "gcmem, mem0"),
        (["import", str(rows), "--tz", "Mars"], "no such timezone"),
        (["import", str(rows)], "line 2: no event time"),
    ):
        shown = gcmem(*arguments, path=path, code=2)
        assert said in shown
        assert shown.count("\n") == 1
    assert "no store at" in gcmem("migrate", str(tmp_path / "none.db"), str(path), code=2)
    shown = gcmem("import", str(rows), "--skip-bad", path=path)
    assert "left out, line 2: no event time" in shown
    assert "1 row could not be read" in shown


def test_import_gives_trust_and_does_not_take_it_from_the_file(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"text": "a", "at": "2026-01-01T00:00:00Z", "trust": 100}\n')
    for options, level in (([], 1), (["--untrusted"], 0), (["--trust", "50"], 50)):
        path = tmp_path / f"{level}.db"
        shown = gcmem("import", str(rows), *options, path=path)
        assert f"1 row claimed a higher trust level; it got {level}" in " ".join(shown.split())
        with Memory(path) as memory:
            assert [chunk.trust for chunk in memory.get_all()] == [level]
    both = gcmem("import", str(rows), "--untrusted", "--trust", "5", path=path, code=2)
    assert "give --trust or --untrusted" in both
