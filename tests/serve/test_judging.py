"""A server judges what is added in the background, counts that, and stops it in time."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from gcmem import Memory
from gcmem.errors import StoreUnavailableError
from gcmem.serve.http.limits import Limits
from gcmem.testing import HashEncoder, RuleOracle
from tests.conftest import same_slot
from tests.serve.conftest import app_over
from tests.serve.slot_judge import SlowJudge, judging_memory

BOTH = {"messages": ["I live in Porto.", "I live in Lisbon."], "user_id": "ana"}


def serving(memory: Memory) -> TestClient:
    return TestClient(app_over(memory, limits=Limits(rate_per_s=0)), base_url="http://localhost")


def figure(client: TestClient, name: str) -> float:
    page = client.get("/metrics").text.splitlines()
    (row,) = [row for row in page if row.startswith(f"{name} ")]
    return float(row.rpartition(" ")[2])


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def judging_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "gcmem-judge"]


def test_what_is_added_is_judged_in_the_background_and_counted(tmp_path: Path) -> None:
    with serving(judging_memory(tmp_path / "m.db", judge="background")) as client:
        assert figure(client, "gcmem_chunks_waiting") == 0
        assert client.post("/v1/memories", json=BOTH).status_code == 201
        wait_until(lambda: figure(client, "gcmem_chunks_waiting") == 0)
        wait_until(lambda: figure(client, "gcmem_chunks_judged_total") == 2)
        assert figure(client, "gcmem_judging_seconds_total") > 0
        newest, oldest = client.get("/v1/history").json()["memories"]
        assert (newest["outcome"], oldest["outcome"]) == ("current", "outdated")
        assert newest["judged"]
        assert oldest["judged"]


def test_an_add_is_answered_while_the_judge_is_busy(tmp_path: Path) -> None:
    judge = SlowJudge()
    with serving(judging_memory(tmp_path / "m.db", judge, judge="background")) as client:
        client.post("/v1/memories", json=BOTH)
        assert judge.has_begun.wait(20)
        assert client.post("/v1/memories", json=BOTH).status_code == 201
        assert figure(client, "gcmem_chunks_waiting") == 4
        assert figure(client, "gcmem_chunks_judged_total") == 0
        judge.may_go.set()
        wait_until(lambda: figure(client, "gcmem_chunks_judged_total") == 4)


def test_what_waited_when_the_server_stopped_is_judged_by_the_next_one(tmp_path: Path) -> None:
    with judging_memory(tmp_path / "m.db") as memory:
        memory.add(BOTH["messages"], user_id="ana")
    with serving(judging_memory(tmp_path / "m.db", judge="background")) as client:
        wait_until(lambda: figure(client, "gcmem_chunks_waiting") == 0)


def test_a_stopping_server_lets_the_judge_finish_a_chunk_before_the_store_closes(
    tmp_path: Path,
) -> None:
    judge = SlowJudge()
    with serving(judging_memory(tmp_path / "m.db", judge, judge="background")) as client:
        client.post("/v1/memories", json={"messages": [*BOTH["messages"], "I live in Rome."]})
        assert judge.has_begun.wait(20)  # it reads the second; the first has nothing before it
        threading.Timer(0.3, judge.may_go.set).start()
    assert judging_threads() == []
    with judging_memory(tmp_path / "m.db") as memory:
        assert memory.pending() == 1
        # The verdict was written, so the store was still open.
        assert [claim.text for claim in memory.current()][-1] == "I live in Lisbon."


def test_with_an_oracle_nothing_is_judged_in_the_background(tmp_path: Path) -> None:
    memory = Memory(
        tmp_path / "m.db",
        encoder=HashEncoder(),
        oracle=RuleOracle(same_slot),
        require_qualified=False,
    )
    with serving(memory) as client:
        client.post("/v1/memories", json=BOTH)
        assert judging_threads() == []
        assert figure(client, "gcmem_chunks_waiting") == 2
        memory.judge()
        assert figure(client, "gcmem_chunks_waiting") == 0
        assert figure(client, "gcmem_chunks_judged_total") == 2


def test_metrics_are_shown_while_the_store_cannot_be_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(_judge: str) -> int:
        raise StoreUnavailableError("the disk is gone")

    memory = judging_memory(tmp_path / "m.db")
    with serving(memory) as client:
        client.post("/v1/memories", json=BOTH)
        assert figure(client, "gcmem_chunks_waiting") == 2
        monkeypatch.setattr(memory.store.ledger, "pending", unreachable)
        assert math.isnan(figure(client, "gcmem_chunks_waiting"))
        assert figure(client, "gcmem_chunks_added_total") == 2


def test_doubts_are_counted_among_what_became_of_candidates(tmp_path: Path) -> None:
    with serving(judging_memory(tmp_path / "m.db")) as client:
        texts = ["My cat is called Tom.", "My cat is perhaps called Tim."]
        client.post("/v1/memories", json={"messages": texts})
        client.post("/v1/search", json={"query": "cat"})
        assert figure(client, 'gcmem_verdicts_total{verdict="kept"}') == 2
        assert figure(client, 'gcmem_verdicts_total{verdict="doubtful"}') == 1
        assert figure(client, 'gcmem_verdicts_total{verdict="shadowed"}') == 0
