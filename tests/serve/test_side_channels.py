"""What one tenant does leaves no trace in the work that the server does for another."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from gcmem import Memory
from gcmem.cli.options import SETTINGS, Judging, locate
from gcmem.cli.serve import served_memory
from gcmem.encode import MiniLMEncoder
from gcmem.judge.local.cross_encoder import CrossEncoder
from gcmem.protocols import Vectors
from gcmem.serve.http.app import make_app
from gcmem.serve.http.limits import Limits
from gcmem.serve.http.metrics import Metrics
from gcmem.serve.keys import KeyStore
from gcmem.testing import RuleOracle
from gcmem.types import CandidateSet, Conflict, Scope
from tests.conftest import same_slot
from tests.serve.conftest import bearer

SECRET = "My PIN is 4711."
OLD = "My PIN was 1200 last year, and I like tea."
QUESTION = "What is my PIN?"
OPTIONS = ["4711", "1200"]
GUESSES = [f"My PIN is {number}." for number in (4709, 4710, 4711, 4712)]

Work = Counter[Any]


class Models:
    """Counts every text that the encoder reads and every row that a cross-encoder reads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.work: Work = Counter()
        self._lock = threading.Lock()
        encode, run = MiniLMEncoder.encode, CrossEncoder.run

        def counted_encode(encoder: MiniLMEncoder, texts: Sequence[str]) -> Vectors:
            self._count(texts)
            return encode(encoder, texts)

        def counted_run(model: CrossEncoder, row: Sequence[int], outputs: Sequence[str]) -> Any:
            self._count([(model.path.name, tuple(row), tuple(outputs))])
            return run(model, row, outputs)

        monkeypatch.setattr(MiniLMEncoder, "encode", counted_encode)
        monkeypatch.setattr(CrossEncoder, "run", counted_run)

    def _count(self, items: Sequence[Any]) -> None:
        with self._lock:
            self.work.update(items)

    def during(self, action: Callable[[], Any]) -> Work:
        self.work = Counter()
        action()
        done, self.work = self.work, Counter()
        return done


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    # A busy machine must not change how much a search has time to judge.
    patient = replace(SETTINGS, judge_budget_ms=60_000)
    monkeypatch.setattr("gcmem.cli.serve.SETTINGS", patient)
    return Models(monkeypatch)


class Tenant:
    """A key that is bound to one user."""

    def __init__(self, client: TestClient, keys: KeyStore, user: str) -> None:
        self._client = client
        self._user = user
        self._headers = bearer(keys, user, scope=Scope(user_id=user))

    def post(self, path: str, body: dict[str, Any]) -> Any:
        reply = self._client.post(path, json=body, headers=self._headers)
        assert reply.status_code in (200, 201), reply.text
        return reply.json()

    def add(self, *texts: str) -> list[str]:
        """Returns when the texts have been judged, which belongs to the work."""
        at = "2026-01-01T09:00:00Z"
        reply = self.post("/v1/memories", {"messages": list(texts), "at": at})
        while self._client.get("/v1/current", headers=self._headers).json()["pending"]:
            time.sleep(0.01)
        return [memory["id"] for memory in reply["memories"]]

    def search(self, query: str) -> Any:
        return self.post("/v1/search", {"query": query})

    def ask(self, question: str, *options: str) -> Any:
        return self.post("/v1/ask", {"question": question, "options": list(options)})

    def resolve(self, query: str, *texts: str) -> Any:
        documents = [
            {"text": text, "at": f"2026-01-0{day}T09:00:00Z"} for day, text in enumerate(texts, 1)
        ]
        return self.post("/v1/resolve", {"query": query, "documents": documents})

    def delete(self, memory_id: str) -> None:
        reply = self._client.delete(f"/v1/memories/{memory_id}", headers=self._headers)
        assert reply.status_code == 204

    def forget(self) -> None:
        reply = self._client.delete(
            "/v1/memories", params={"user_id": self._user}, headers=self._headers
        )
        assert reply.json()["forgotten"] > 0


@contextmanager
def serving(folder: Path) -> Iterator[tuple[Tenant, Tenant]]:
    """Yields Ana and Bob of one server, put together as `gcmem serve` does."""
    folder.mkdir()
    where = locate(path=folder / "m.db")
    metrics = Metrics()
    keys = KeyStore(folder / "keys")
    app = make_app(
        served_memory(where, Judging(), metrics),
        keys=keys,
        limits=Limits(rate_per_s=0),
        metrics=metrics,
    )
    with TestClient(app, base_url="http://localhost") as client:
        while client.get("/readyz").status_code != 200:  # loading the models counts as work too
            time.sleep(0.01)
        yield Tenant(client, keys, "ana"), Tenant(client, keys, "bob")


def everything_about_the_secret(bob: Tenant) -> None:
    """Puts the secret through every route that reads texts."""
    bob.add(OLD, SECRET)
    bob.search(QUESTION)
    bob.search(SECRET)
    bob.ask(QUESTION, *OPTIONS)
    bob.ask(QUESTION)
    bob.resolve(QUESTION, OLD, SECRET)


def probes(ana: Tenant) -> dict[str, Callable[[], Any]]:
    """Returns what Ana can try for each guess; she has Bob's other line, and asks what he asks."""
    tried: dict[str, Callable[[], Any]] = {}
    for guess in GUESSES:
        tried[f"search {guess}"] = lambda guess=guess: ana.search(guess)  # type: ignore[misc]
        tried[f"resolve {guess}"] = lambda guess=guess: ana.resolve(QUESTION, OLD, guess)  # type: ignore[misc]
        tried[f"add {guess}"] = lambda guess=guess: ana.add(guess)  # type: ignore[misc]
    tried["ask with options"] = lambda: ana.ask(QUESTION, *OPTIONS)
    tried["ask"] = lambda: ana.ask(QUESTION)
    return tried


@pytest.mark.parametrize("forgets", [False, True])
def test_the_models_work_as_much_for_a_probe_as_if_the_other_tenant_did_not_exist(
    tmp_path: Path, models: Models, forgets: bool
) -> None:
    seen: list[dict[str, Work]] = []
    for world in ("alone", "with bob"):
        with serving(tmp_path / world) as (ana, bob):
            if world == "with bob":
                everything_about_the_secret(bob)
                if forgets:
                    bob.forget()
            ana.add(OLD)
            seen.append({name: models.during(probe) for name, probe in probes(ana).items()})
    alone, with_bob = seen
    hits = {name: alone[name] - with_bob[name] for name in alone if alone[name] != with_bob[name]}
    assert hits == {}
    for guess in GUESSES:
        assert with_bob[f"search {guess}"][guess] == 1
        # Once as a chunk, once as a claim.
        assert with_bob[f"add {guess}"][f"user: {guess}"] == 2


def test_documents_to_resolve_are_read_anew_each_time(tmp_path: Path, models: Models) -> None:
    documents = ("Our wifi password is kiwi.", "Our wifi password is plum now.")
    with serving(tmp_path / "m") as (ana, bob):
        first = models.during(lambda: bob.resolve("wifi password", *documents))
        assert models.during(lambda: ana.resolve("wifi password", *documents)) == first
        assert models.during(lambda: bob.resolve("wifi password", *documents)) == first


def test_a_scope_reuses_its_own_questions_until_it_erases_something(
    tmp_path: Path, models: Models
) -> None:
    with serving(tmp_path / "m") as (ana, bob):
        _, second = ana.add(OLD, SECRET)
        bob.add(OLD)
        ana.search(QUESTION)
        bob.search(QUESTION)
        assert not models.during(lambda: ana.search(QUESTION))
        ana.delete(second)
        assert models.during(lambda: ana.search(QUESTION))[QUESTION]
        assert not models.during(lambda: bob.search(QUESTION))
        ana.forget()
        assert models.during(lambda: ana.search(QUESTION))[QUESTION]


def test_an_oracle_that_remembers_ids_sees_no_document_twice(memory: Memory) -> None:
    seen: list[str] = []

    class Remembering(RuleOracle):
        def judge(self, candidates: CandidateSet) -> tuple[Conflict, ...]:
            seen.extend(item.chunk.id for item in candidates)
            return super().judge(candidates)

    memory.oracle = Remembering(same_slot)
    documents = [
        {"text": "pin=1", "at": "2026-01-01T09:00:00Z"},
        {"text": "pin=2", "at": "2026-01-02T09:00:00Z"},
    ]
    with TestClient(make_app(memory), base_url="http://localhost") as client:
        while client.get("/readyz").status_code != 200:
            time.sleep(0.01)
        seen.clear()
        for _ in range(2):
            reply = client.post("/v1/resolve", json={"documents": documents}).json()
            assert [shadow["document"]["text"] for shadow in reply["shadows"]] == ["pin=1"]
    assert len(set(seen)) == len(seen) == 4
