"""The LLM oracle against real HTTP endpoints on loopback."""

from __future__ import annotations

import json

import pytest

from gcmem import Candidate, CandidateSet, Chunk
from gcmem.errors import ModelAuthenticationError, ModelNotFoundError, ModelUnavailableError
from gcmem.judge import LLMOracle
from gcmem.judge.llm import Style
from tests.conftest import day
from tests.processes.conftest import Connect, Faulty, chat_reply, url

TEXTS = ("Ana lives in Lyon.", "Ana moved to Porto last week.", "Ana has a cat.")
CHUNKS = tuple(Chunk(id=f"c{n}", text=text, at=day(n)) for n, text in enumerate(TEXTS))
CANDIDATES = CandidateSet(
    query="Where does Ana live?",
    items=tuple(Candidate(chunk=chunk, relevance=0.5, origin="mtm") for chunk in CHUNKS),
)
PAIR = CandidateSet(query=CANDIDATES.query, items=CANDIDATES.items[:2])
FOUND = (200, chat_reply(json.dumps({"conflicts": [{"older": 1, "newer": 2, "confidence": 0.9}]})))


@pytest.mark.parametrize("style", ["listwise", "pairwise"])
def test_a_real_model_judges_a_set(connect: Connect, small_model: str, style: Style) -> None:
    # Few tokens: a model this small fills a list until it is stopped, which is then malformed.
    chat = connect(model="smollm2", base_url=small_model, max_tokens=64)
    oracle = LLMOracle(chat, style=style)
    found = oracle.judge(CANDIDATES)
    ids = {chunk.id for chunk in CHUNKS}
    assert all({conflict.older, conflict.newer} <= ids for conflict in found)
    assert all(conflict.older < conflict.newer for conflict in found)
    assert all(0.5 <= conflict.score <= 1.0 for conflict in found)
    assert oracle.last_usage.calls == (1 if style == "listwise" else 3)
    assert oracle.last_usage.tokens > 0
    assert oracle.last_usage.unjudged == 0


def test_a_rate_limit_is_waited_out(connect: Connect, faulty: Faulty) -> None:
    faulty.script = [(429, {"error": "slow down"}), FOUND]
    oracle = LLMOracle(connect(model="m", base_url=url(faulty)))
    (conflict,) = oracle.judge(CANDIDATES)
    assert (conflict.older, conflict.newer, conflict.score) == ("c0", "c1", 0.9)
    assert conflict.oracle == "llm:m:listwise@2"
    assert faulty.calls == 2


@pytest.mark.parametrize("style", ["listwise", "pairwise"])
def test_a_hanging_server_is_an_error_and_not_a_verdict(
    connect: Connect, faulty: Faulty, style: Style
) -> None:
    faulty.script = [(0, None)]
    chat = connect(model="m", base_url=url(faulty), timeout_s=0.2, max_retries=0)
    oracle = LLMOracle(chat, style=style)
    with pytest.raises(ModelUnavailableError, match="timeout_s"):
        oracle.judge(PAIR)
    assert oracle.last_usage.calls == 1


@pytest.mark.parametrize(
    ("status", "error"), [(401, ModelAuthenticationError), (404, ModelNotFoundError)]
)
def test_a_wrong_key_or_model_is_an_error_and_not_a_verdict(
    connect: Connect, faulty: Faulty, status: int, error: type[Exception]
) -> None:
    faulty.script = [(status, {"error": {"message": "no"}})]
    with pytest.raises(error):
        LLMOracle(connect(model="m", base_url=url(faulty))).judge(PAIR)


@pytest.mark.parametrize(
    "broken",
    [
        '{"conflicts": [{"older": 1',
        '{"conflicts": [1]}',
        '{"conflicts": [{"older": 1, "newer": 2}]}',
        '{"conflicts": [{"older": true, "newer": 2, "confidence": 1}]}',
        "[" * 5000,
    ],
)
def test_a_broken_reply_is_no_conflict_and_is_counted(
    connect: Connect, faulty: Faulty, broken: str
) -> None:
    faulty.script = [(200, chat_reply(broken))]
    oracle = LLMOracle(connect(model="m", base_url=url(faulty)))
    assert oracle.judge(CANDIDATES) == ()
    assert (oracle.last_usage.calls, oracle.last_usage.malformed) == (1, 1)
    assert oracle.last_usage.tokens == 21, "all three tries are paid for"


def test_pairwise_counts_one_broken_reply_and_keeps_the_others(
    connect: Connect, faulty: Faulty
) -> None:
    good = (200, chat_reply('{"conflict": true, "confidence": 0.8}'))
    faulty.script = [(200, chat_reply("{oops"))] * 3 + [good]
    chat = connect(model="m", base_url=url(faulty))
    oracle = LLMOracle(chat, style="pairwise", max_workers=1)
    assert len(oracle.judge(CANDIDATES)) == 2
    assert (oracle.last_usage.calls, oracle.last_usage.malformed) == (3, 1)
