from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Model, ModelResponse, Runner, Session, Usage, function_tool
from agents.memory import SessionSettings
from agents.run import RunConfig
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from gcmem import Memory
from gcmem.errors import InvalidInputError
from gcmem.integrations.openai_agents import GCMemSession
from gcmem.testing import HashEncoder, RuleOracle
from tests.conftest import same_slot
from tests.frameworks.docs_examples import run_docs_example

ROOT = Path(__file__).parents[3]
QUIET = RunConfig(tracing_disabled=True)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """A memory with a fast encoder, the toy oracle and a clock that goes on."""
    with Memory(
        tmp_path / "m.db",
        encoder=HashEncoder(),
        oracle=RuleOracle(same_slot),
        require_qualified=False,
    ) as memory:
        yield memory


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "m", "role": "assistant", "content": [part]}


CALL = {"type": "function_call", "call_id": "c", "name": "weather", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c", "output": "sunny"}
REASONING = {"type": "reasoning", "id": "r", "summary": []}


def add(session: GCMemSession, *items: dict[str, Any]) -> None:
    asyncio.run(session.add_items(items))


def get(session: GCMemSession, limit: int | None = None) -> list[dict[str, Any]]:
    return asyncio.run(session.get_items(limit))


class ScriptedModel(Model):
    """Calls a tool once, if asked to, then answers; keeps what it was sent."""

    def __init__(self, *outputs: Any) -> None:
        self.outputs = list(outputs)
        self.requests: list[Any] = []

    async def get_response(
        self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any
    ) -> ModelResponse:
        self.requests.append(input)
        text = ResponseOutputText(text="ok", type="output_text", annotations=[])
        message = ResponseOutputMessage(
            id="m", content=[text], role="assistant", status="completed", type="message"
        )
        output = self.outputs.pop(0) if self.outputs else message
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def test_it_is_a_session(memory: Memory) -> None:
    assert isinstance(GCMemSession("s", memory=memory), Session)


def test_items_come_back_as_they_went_in(memory: Memory) -> None:
    items = [user("hello=1"), REASONING, CALL, RESULT, assistant("Noted."), user("Where?")]
    session = GCMemSession("s", memory=memory)
    add(session, *items[:2])
    add(session, *items[2:])
    assert get(session) == items
    assert get(GCMemSession("s", memory=memory)) == items
    assert get(GCMemSession("other", memory=memory)) == []


def test_a_limit_gives_the_newest_items(memory: Memory) -> None:
    session = GCMemSession("s", memory=memory, session_settings=SessionSettings(limit=2))
    add(session, user("a=1"), user("b=1"), user("c=1"))
    assert get(session) == [user("b=1"), user("c=1")]
    assert get(session, 1) == [user("c=1")]
    assert get(session, 0) == []


def test_a_superseded_message_is_left_out_and_an_old_true_one_stays(memory: Memory) -> None:
    session = GCMemSession("s", memory=memory)
    add(session, user("diet=vegan"), user("home=Porto"), assistant("home=Porto"))
    add(session, user("home=Lyon"))
    assert get(session) == [user("diet=vegan"), user("home=Lyon")]
    assert len(asyncio.run(session.all_items())) == 4
    shadows = asyncio.run(session.shadows())
    assert {s.candidate.chunk.speaker for s in shadows} == {"user", "assistant"}
    assert {s.witness.chunk.text for s in shadows} == {"home=Lyon"}


def test_annotated_messages_stay_and_say_why(memory: Memory) -> None:
    session = GCMemSession("s", memory=memory, mode="annotate")
    add(session, user("home=Porto"), assistant("home=Porto"), user("home=Lyon"))
    old, said, new = get(session)
    assert old["content"].startswith("[no longer true since 20")
    assert old["content"].endswith(": home=Lyon]\nhome=Porto")
    assert said["content"][0]["text"].endswith(": home=Lyon]\nhome=Porto")
    assert new == user("home=Lyon")


def test_an_unqualified_oracle_only_annotates(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="never measured"):
        memory = Memory(tmp_path / "m.db", encoder=HashEncoder(), oracle=RuleOracle(same_slot))
    with memory:
        session = GCMemSession("s", memory=memory)
        add(session, user("home=Porto"), user("home=Lyon"))
        assert len(get(session)) == 2


def test_an_unknown_mode_is_refused(memory: Memory) -> None:
    with pytest.raises(InvalidInputError, match="drop, annotate"):
        GCMemSession("s", memory=memory, mode="demote")  # type: ignore[arg-type]


def test_what_the_user_says_in_another_session_counts(memory: Memory) -> None:
    first = GCMemSession("s1", memory=memory, user_id="ana")
    add(first, user("home=Porto"), user("diet=vegan"))
    add(GCMemSession("s2", memory=memory, user_id="ben"), user("home=Rome"))
    assert get(first) == [user("home=Porto"), user("diet=vegan")]
    add(GCMemSession("s3", memory=memory, user_id="ana"), user("home=Lyon"))
    assert get(first) == [user("diet=vegan")]


def test_only_what_the_user_states_is_remembered_for_searches(memory: Memory) -> None:
    session = GCMemSession("s", memory=memory, user_id="ana")
    add(session, user("home=Porto"), assistant("home=Rome"), CALL, RESULT, user("home=where?"))
    assert [c.text for c in memory.get_all(user_id="ana")] == ["home=Porto"]
    assert [hit.chunk.text for hit in memory.search("home", run_id="s")] == ["home=Porto"]


def test_reasoning_goes_with_the_message_that_it_led_to(memory: Memory) -> None:
    session = GCMemSession("s", memory=memory)
    add(session, user("hi=1"), REASONING, assistant("home=Porto"), user("home=Lyon"))
    assert get(session) == [user("hi=1"), user("home=Lyon")]


def test_calls_keep_their_results(memory: Memory) -> None:
    session = GCMemSession("s", memory=memory)
    add(session, user("home=Porto"), CALL, RESULT, user("home=Lyon"))
    assert get(session) == [CALL, RESULT, user("home=Lyon")]


def test_a_long_message_stays_while_a_part_of_it_is_true(memory: Memory) -> None:
    long = "home=Porto\n" + "\n".join(f"note {n} is {'word ' * 60}." for n in range(8))
    session = GCMemSession("s", memory=memory)
    add(session, user(long), user("home=Lyon"))
    assert get(session) == [user(long), user("home=Lyon")]


def test_pop_erases_the_newest_and_brings_back_what_it_had_superseded(memory: Memory) -> None:
    session = GCMemSession("s", memory=memory, user_id="ana")
    add(session, user("home=Porto"), user("home=Lyon"))
    assert asyncio.run(session.pop_item()) == user("home=Lyon")
    assert get(session) == [user("home=Porto")]
    assert asyncio.run(session.pop_item()) == user("home=Porto")
    assert asyncio.run(session.pop_item()) is None
    assert memory.get_all() == ()


def test_clear_erases_this_session_alone(memory: Memory) -> None:
    session = GCMemSession("s", memory=memory, user_id="ana")
    other = GCMemSession("t", memory=memory, user_id="ana")
    add(session, user("home=Porto"), CALL)
    add(other, user("diet=vegan"))
    asyncio.run(session.clear_session())
    assert get(session) == []
    assert get(other) == [user("diet=vegan")]
    assert [c.text for c in memory.get_all(user_id="ana")] == ["diet=vegan"]


def test_a_run_with_a_tool_is_kept_and_replayed_async_and_sync(memory: Memory) -> None:
    @function_tool
    def weather() -> str:
        """Tells the weather."""
        return "sunny"

    call = ResponseFunctionToolCall(
        call_id="c", name="weather", arguments="{}", type="function_call", id="f"
    )
    model = ScriptedModel(call)
    agent = Agent(name="a", model=model, tools=[weather])
    session = GCMemSession("s", memory=memory)

    async def chat() -> None:
        await Runner.run(agent, "home=Porto", session=session, run_config=QUIET)
        await Runner.run(agent, "home=Lyon", session=session, run_config=QUIET)

    asyncio.run(chat())
    Runner.run_sync(agent, "home?", session=session, run_config=QUIET)
    sent = model.requests[-1]
    kinds = [item.get("type") or item["role"] for item in sent]
    assert kinds == ["function_call", "function_call_output", "message", "user", "message", "user"]
    assert [i["content"] for i in sent if i.get("role") == "user"] == ["home=Lyon", "home?"]


def test_the_example_shows_a_plain_session_with_the_stale_fact_and_ours_without() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", ROOT / "examples" / "with_openai_agents.py"],
        capture_output=True,
        text=True,
        check=True,
    )
    plain, ours = done.stdout.split("GCMemSession:")
    assert "I live in Porto." in plain
    assert "I live in Porto." not in ours
    assert "I live in Lyon now." in ours
    assert "I'm allergic to peanuts." in ours
    assert "Where do I live, and what must I not eat?" in ours


def test_the_example_in_the_docs_runs() -> None:
    run_docs_example("openai-agents")
