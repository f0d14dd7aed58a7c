"""A class that comes from the record in the home folder is named on stderr."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcmem.cli.location import Location
from gcmem.cli.options import Judging, open_memory
from gcmem.cli.oracles import oracle_named
from gcmem.cli.serve import served_memory
from gcmem.judge.fitness import save_fitness
from gcmem.serve.http.metrics import Metrics
from gcmem.types import Fitness

NOWHERE = "http://127.0.0.1:9/v1"
MODEL = Judging(oracle="llm:m", base_url=NOWHERE)


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Location:
    monkeypatch.setenv("HOME", str(tmp_path))
    return Location(store=str(tmp_path / "m.db"), stm=None, source="flags", config=None)


def record(oracle: str, fitness: Fitness) -> str:
    oracle_id = oracle_named(oracle, base_url=NOWHERE).id
    save_fitness(oracle_id, fitness)
    return f"gcmem: conflict model {oracle_id} is {fitness}, by ~/.gcmem/qualified.json\n"


def test_the_command_line_says_that_the_record_decides(
    where: Location, capsys: pytest.CaptureFixture[str]
) -> None:
    line = record("llm:m", "marginal")
    with open_memory(where, MODEL) as memory:
        assert memory.removes
    assert capsys.readouterr().err == line


def test_the_server_says_that_the_record_decides(
    where: Location, capsys: pytest.CaptureFixture[str]
) -> None:
    line = record("llm:m", "optimal")
    with served_memory(where, MODEL, Metrics()) as memory:
        assert memory.removes
    assert capsys.readouterr().err == line


def test_nothing_is_said_where_the_record_does_not_decide(
    where: Location, capsys: pytest.CaptureFixture[str]
) -> None:
    record("local", "unfit")  # the class that comes with the release counts
    record("llm:m", "marginal")
    with open_memory(where) as memory:
        assert memory.removes
    with served_memory(where, Judging(), Metrics()):
        pass
    with open_memory(where, Judging(oracle="llm:m", base_url=NOWHERE, unqualified=True)):
        pass
    assert capsys.readouterr().err == ""
