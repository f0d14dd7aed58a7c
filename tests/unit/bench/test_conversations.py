"""The script that measures search on real conversations."""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
from pathlib import Path

import pytest

from gcmem.bench.data.datasets import load_dataset
from gcmem.errors import InvalidInputError
from tests.unit.bench.test_datasets import lme_row

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "conversations.py"


def test_compressed_lines_are_read_like_plain_ones(tmp_path: Path) -> None:
    line = json.dumps(lme_row())
    plain, packed = tmp_path / "dev.jsonl", tmp_path / "dev.jsonl.xz"
    plain.write_text(line + "\n")
    packed.write_bytes(lzma.compress(plain.read_bytes()))
    assert load_dataset("longmemeval", packed) == load_dataset("longmemeval", plain)
    packed.write_bytes(b"no such format")
    with pytest.raises(InvalidInputError, match="can't read"):
        load_dataset("longmemeval", packed)


def test_evidence_and_outdated_turns_are_counted_before_and_after(tmp_path: Path) -> None:
    file = tmp_path / "dev.jsonl"
    file.write_text(json.dumps(lme_row()) + "\n")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--longmemeval", str(file)],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert (found["set"], found["questions"]) == ("longmemeval", 1)
    assert found["evidence"] == found["found_plain"] > 0
    assert found["outdated_plain"] > 0
    assert found["plain_p50_ms"] > 0
    assert found["judged_p50_ms"] > 0
    assert found["turns_judged_per_s"] > 0
    assert found["added_per_s_judging"] > 0
