"""The LLM reader and encoder against real HTTP endpoints on loopback.

A small real model answers over the OpenAI protocol; a scripted server shows the faults.
"""

from __future__ import annotations

from typing import Any

import pytest

from gcmem import Chunk, Memory
from gcmem.answer import LLMReader
from gcmem.encode import OpenAIEncoder
from gcmem.errors import (
    ModelAuthenticationError,
    ModelError,
    ModelResponseError,
    ModelUnavailableError,
)
from gcmem.llm import OpenAIChat
from gcmem.types import Prompt
from tests.conftest import day
from tests.processes.conftest import Connect, Faulty, chat_reply, url

SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}


def test_a_real_model_chooses_one_of_the_options(connect: Connect, small_model: str) -> None:
    chat = connect(model="smollm2", base_url=small_model)
    chunks = (Chunk(id="1", text="Ana eats steak every Friday.", at=day(1)),)
    asked = Prompt(
        question="What does Ana eat?",
        chunks=chunks,
        options=("meat", "only plants"),
        mode="forced-choice",
    )
    (reading,) = LLMReader(chat).read([asked])
    assert reading.choice in asked.options
    assert reading.tokens > 0


def test_a_memory_asks_a_real_model(connect: Connect, small_model: str) -> None:
    chat = connect(model="smollm2", base_url=small_model)
    with Memory(":memory:", reader=LLMReader(chat)) as memory:
        memory.add("I live in Lyon.", user_id="ana", at=day(1))
        answer = memory.ask("Where do I live?", user_id="ana", options=["Lyon", "Porto"])
    assert answer.choice in ("Lyon", "Porto", None)
    assert answer.tokens > 0


def ask(server: Faulty, **settings: Any) -> tuple[dict[str, Any], int]:
    with OpenAIChat(model="m", base_url=url(server), **settings) as chat:
        return chat.complete(system="s", user="u", schema=SCHEMA)


def test_rate_limits_and_server_errors_are_retried(faulty: Faulty) -> None:
    good = (200, chat_reply('{"answer": "yes"}'))
    faulty.script = [(429, {"error": "slow down"}), (503, {"error": "busy"}), good]
    assert ask(faulty) == ({"answer": "yes"}, 7)
    assert faulty.calls == 3


def test_broken_json_is_asked_for_again_then_raised(faulty: Faulty) -> None:
    good = (200, chat_reply('{"answer": "yes"}'))
    faulty.script = [(200, chat_reply("{oops")), (200, chat_reply('{"other": 1}')), good]
    assert ask(faulty) == ({"answer": "yes"}, 21)
    for wrong in ("[]", '{"answer": 3}', '{"answer": null}'):
        faulty.script, faulty.calls = [(200, chat_reply(wrong))], 0
        with pytest.raises(ModelResponseError, match="requested schema"):
            ask(faulty)
        assert faulty.calls == 3


def test_an_answer_that_is_no_option_is_refused(connect: Connect, faulty: Faulty) -> None:
    faulty.script = [(200, chat_reply('{"answer": "Berlin"}'))]
    chat = connect(model="m", base_url=url(faulty))
    asked = Prompt(question="q", chunks=(), options=("a", "b"), mode="forced-choice")
    with pytest.raises(ModelResponseError):
        LLMReader(chat).read([asked])


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, ModelAuthenticationError),
        (403, ModelAuthenticationError),
        (404, ModelResponseError),
        (422, ModelError),
        (429, ModelUnavailableError),
        (500, ModelUnavailableError),
    ],
)
def test_every_refusal_has_its_error(faulty: Faulty, status: int, error: type[ModelError]) -> None:
    faulty.script = [(status, {"error": {"message": "no"}})]
    with pytest.raises(error):
        ask(faulty, max_retries=0)


def test_a_hanging_server_runs_into_the_timeout(faulty: Faulty) -> None:
    faulty.script = [(0, None)]
    with pytest.raises(ModelUnavailableError, match="timeout_s"):
        ask(faulty, timeout_s=0.2, max_retries=0)


def test_a_refused_connection_says_so(connect: Connect) -> None:
    chat = connect(model="m", base_url="http://127.0.0.1:9/v1", max_retries=0)
    with pytest.raises(ModelUnavailableError, match="can't reach"):
        chat.complete(system="s", user="u", schema=SCHEMA)


def test_embeddings_are_normalised_and_checked(faulty: Faulty) -> None:
    rows = [
        {"object": "embedding", "index": n, "embedding": v}
        for n, v in enumerate([[3.0, 4.0], [0.0, 2.0]])
    ]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    faulty.script = [(200, {"object": "list", "data": rows, "model": "m", "usage": usage})]
    encoder = OpenAIEncoder(model="m", dimensions=2, base_url=url(faulty))
    assert encoder.encode(["a", "b"]).tolist() == [
        [pytest.approx(0.6), pytest.approx(0.8)],
        [0.0, 1.0],
    ]
    assert encoder.id == "openai:m:2"
    with pytest.raises(ModelResponseError, match="dimensions=2"):
        OpenAIEncoder(model="m", dimensions=3, base_url=url(faulty)).encode(["a", "b"])
