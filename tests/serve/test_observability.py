from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.testclient import TestClient

from gcmem import Memory
from gcmem.calls import ScopedCache, one_call
from gcmem.judge import PairwiseOracle
from gcmem.serve.http.limits import Limits
from gcmem.serve.http.logs import JSONFormatter
from gcmem.serve.http.metrics import Metrics, count_scores
from gcmem.serve.http.remembering import RememberingOracle
from gcmem.serve.keys import KeyStore
from gcmem.store import open_embedded
from gcmem.testing import HashEncoder, RuleOracle
from gcmem.types import Candidate, CandidateSet, Chunk, Conflict, Scope
from tests.conftest import day, same_slot
from tests.serve.conftest import app_over, bearer

SECRET = "pin=kumquat-47"  # no id and no time can hold it by chance


def value(client: TestClient, line: str) -> float:
    page = client.get("/metrics").text.splitlines()
    return next((float(row.rpartition(" ")[2]) for row in page if row.startswith(f"{line} ")), 0.0)


def test_metrics_count_requests_by_route_and_what_became_of_candidates(client: TestClient) -> None:
    for n, text in enumerate(("city=Rome", "city=Oslo")):
        client.post("/v1/memories", json={"messages": text, "at": day(n).isoformat()})
    client.post("/v1/search", json={"query": "city"})
    client.get("/v1/memories/one")
    client.get("/v1/memories/two")
    client.get("/no/such/path")
    route = '{method="GET",route="/v1/memories/{memory_id}",status="404"}'
    assert value(client, f"gcmem_requests_total{route}") == 2
    assert value(client, 'gcmem_requests_total{method="GET",route="(none)",status="404"}') == 1
    assert value(client, "gcmem_chunks_added_total") == 2
    assert value(client, "gcmem_shadows_total") == 1
    assert value(client, 'gcmem_verdicts_total{verdict="kept"}') == 1
    for stage in ("encode", "retrieve", "conflict", "dominance"):
        line = f'gcmem_stage_seconds_count{{route="/v1/search",stage="{stage}"}}'
        assert value(client, line) == 1
    assert value(client, 'gcmem_request_seconds_count{route="/v1/search"}') == 1


class AlwaysAtOdds:
    """A classifier that counts how often it is asked."""

    id = "odds@1"
    asked = 0

    def score(self, question: str, pairs: list[tuple[str, str]]) -> list[float]:
        self.asked += len(pairs)
        return [1.0] * len(pairs)


def test_scores_are_counted_by_where_they_came_from(tmp_path: Path) -> None:
    metrics, encoder, classifier = Metrics(), HashEncoder(), AlwaysAtOdds()
    store = count_scores(open_embedded(tmp_path / "m.db", encoder=encoder, stm_size=10), metrics)
    oracle = PairwiseOracle(classifier, cache=store.scores)  # type: ignore[arg-type]
    memory = Memory(store=store, encoder=encoder, oracle=oracle, require_qualified=False)
    app = app_over(memory, metrics=metrics, limits=Limits(rate_per_s=0))
    with TestClient(app, base_url="http://localhost") as client:
        client.post("/v1/memories", json={"messages": ["city one", "city two"]})
        client.post("/v1/search", json={"query": "city"})
        client.post("/v1/search", json={"query": "city"})
        assert value(client, 'gcmem_kappa_scores_total{source="model"}') == classifier.asked == 1
        assert value(client, 'gcmem_kappa_scores_total{source="cache"}') == 1


def test_no_metric_names_a_user_a_key_or_a_text(guarded: TestClient, keys: KeyStore) -> None:
    ana, admin = bearer(keys, "the-key", scope=Scope(user_id="ana-7")), bearer(keys, "admin")
    guarded.post("/v1/memories", json={"messages": SECRET}, headers=ana)
    page = guarded.get("/metrics", headers=admin).text
    assert not [word for word in ("ana-7", "the-key", "kumquat") if word in page]


def logged(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    return [json.loads(JSONFormatter().format(record)) for record in caplog.records]


@pytest.mark.parametrize("log_contents", [False, True])
def test_a_request_is_one_line_without_contents_unless_asked(
    memory: Memory, keys: KeyStore, caplog: pytest.LogCaptureFixture, log_contents: bool
) -> None:
    caplog.set_level(logging.INFO, "gcmem.serve")
    ana = bearer(keys, "ana's", scope=Scope(user_id="ana"))
    app = app_over(memory, keys=keys, log_contents=log_contents)
    with TestClient(app, base_url="http://localhost") as client:
        caplog.clear()
        reply = client.post("/v1/memories?token=x", json={"messages": SECRET}, headers=ana)
        client.post("/v1/search", json={"query": SECRET, "k": 0}, headers=ana)
    first, second = [line for line in logged(caplog) if line["event"] == "request"]
    assert first["request_id"] == reply.headers["x-request-id"]
    assert (first["route"], first["status"], first["key"]) == ("/v1/memories", 201, "ana's")
    assert isinstance(first["ms"], float)
    assert second["status"] == 422
    everything = json.dumps(logged(caplog))
    assert ("kumquat" in everything) == log_contents
    assert ana["Authorization"].split("_", 2)[2] not in everything


def test_a_crash_is_logged_by_its_place_not_its_words(
    client: TestClient,
    memory: Memory,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_args: object, **_kwargs: object) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(memory.store.log, "get", broken)
    caplog.set_level(logging.INFO, "gcmem.serve")
    reply = client.get("/v1/memories/x")
    (crash,) = [line for line in logged(caplog) if line["event"] == "crash"]
    assert crash["error"] == "RuntimeError"
    assert crash["request_id"] == reply.headers["x-request-id"]
    assert "broken" in str(crash["frames"])
    assert "kumquat" not in json.dumps(logged(caplog))


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    """OpenTelemetry takes one provider a process."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> Iterator[InMemorySpanExporter]:
    exporter.clear()
    yield exporter
    exporter.clear()


def test_operations_are_spans_of_the_caller_s_trace(
    client: TestClient, spans: InMemorySpanExporter
) -> None:
    parent = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}
    added = client.post(
        "/v1/memories", json={"messages": SECRET, "agent_id": "bot"}, headers=parent
    ).json()["memories"][0]
    client.post("/v1/search", json={"query": SECRET})
    client.delete(f"/v1/memories/{added['id']}")
    client.delete(f"/v1/memories/{added['id']}")
    # The framework makes spans of its own, which lie between the caller's and ours.
    own = [s for s in spans.get_finished_spans() if s.name.endswith("_memory gcmem")]
    upsert, search, delete, missing = own
    assert [s.name for s in (upsert, search, delete)] == [
        "upsert_memory gcmem", "search_memory gcmem", "delete_memory gcmem"
    ]  # fmt: skip
    assert upsert.attributes is not None
    assert upsert.attributes["gen_ai.operation.name"] == "upsert_memory"
    assert upsert.attributes["gen_ai.agent.id"] == "bot"
    assert upsert.context is not None
    assert f"{upsert.context.trace_id:032x}" == "a" * 32
    assert search.attributes is not None
    assert search.attributes["gcmem.kept"] == 1
    assert delete.attributes is not None
    assert delete.attributes["gen_ai.memory.record.id"] == added["id"]
    assert missing.attributes is not None
    assert missing.attributes["error.type"] == "ChunkNotFoundError"
    assert "kumquat" not in "".join(s.to_json() for s in spans.get_finished_spans())


def test_a_person_s_word_is_a_span_without_its_reason(
    client: TestClient, memory: Memory, spans: InMemorySpanExporter
) -> None:
    older, newer = (chunk.id for chunk in memory.add(["city=Rome", "city=Oslo"]))
    said = {"older": older, "newer": newer, "word": "confirm", "reason": SECRET}
    client.post("/v1/verdicts", json=said)
    client.post(f"/v1/memories/{newer}/pin")
    client.delete(f"/v1/memories/{newer}/pin")
    own = [s for s in spans.get_finished_spans() if s.name == "update_memory gcmem"]
    ids = [(s.attributes or {})["gen_ai.memory.record.id"] for s in own]
    assert ids == [older, newer, newer]
    assert "kumquat" not in "".join(s.to_json() for s in spans.get_finished_spans())


def test_without_opentelemetry_nothing_happens() -> None:
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from gcmem.serve.http.telemetry import Spans\n"
        "with Spans(store_id='x').open('search_memory', headers={}) as outcome: outcome['a'] = 1\n"
        "print('ok')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "ok", done.stderr


def test_an_oracle_that_remembers_is_asked_once_a_scope_for_a_set() -> None:
    class Counting(RuleOracle):
        asked = 0

        def judge(self, candidates: CandidateSet) -> tuple[Conflict, ...]:
            self.asked += 1
            return super().judge(candidates)

    inner = Counting(same_slot)
    oracle = RememberingOracle(inner)
    items = tuple(
        Candidate(chunk=Chunk(id=str(n), text=f"a={n}", at=day(n)), relevance=0.5, origin="mtm")
        for n in range(2)
    )
    candidates = CandidateSet(query="a", items=items)
    cache = ScopedCache()
    judged = []
    for scope in (Scope(user_id="ana"), Scope(user_id="bob"), Scope(), Scope(user_id="ana")):
        with one_call(cache, scope):
            judged += [oracle.judge(candidates), oracle.judge(candidates)]
    assert inner.asked == 3
    assert set(judged) == {inner.judge(candidates)}
    other = CandidateSet(query="b", items=items)
    with one_call(cache, Scope(user_id="ana")):
        oracle.judge(other)
    oracle.judge(candidates)  # outside of a call nothing is remembered
    assert inner.asked == 6
    assert oracle.id == inner.id
