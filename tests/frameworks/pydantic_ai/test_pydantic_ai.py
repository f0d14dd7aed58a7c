from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import (
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from gcmem import Memory
from gcmem.errors import InvalidInputError
from gcmem.integrations.pydantic_ai import REMOVED, SupersededTurns, memory_toolset
from gcmem.testing import HashEncoder, RuleOracle
from tests.conftest import same_slot
from tests.frameworks.docs_examples import run_docs_example

ROOT = Path(__file__).parents[3]
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _event_loop() -> Iterator[None]:
    """The loop that run_sync uses: one that it makes itself would never be closed."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.close()
    asyncio.set_event_loop(None)


def turns(**options: Any) -> SupersededTurns:
    return SupersededTurns(oracle=RuleOracle(same_slot), require_qualified=False, **options)


def user(text: Any, day: int, *, system: str | None = None) -> ModelRequest:
    prompt = UserPromptPart(text, timestamp=START + timedelta(days=day))
    return ModelRequest(parts=[*([SystemPromptPart(system)] if system else []), prompt])


def model(*parts: Any, day: int) -> ModelResponse:
    return ModelResponse(parts=list(parts), timestamp=START + timedelta(days=day))


def contents(messages: list[ModelMessage]) -> list[Any]:
    return [part.content for message in messages for part in message.parts]


def test_a_superseded_turn_goes_and_an_old_true_one_stays() -> None:
    history = [
        user("diet=vegan", 0),
        user("home=Porto", 1),
        model(TextPart("home=Porto"), day=1),
        user("home=Lyon", 2),
        user("home=where?", 3),
    ]
    assert contents(turns()(history)) == ["diet=vegan", "home=Lyon", "home=where?"]
    assert len(history) == 5
    witnesses = {s.witness.chunk.text for s in turns().shadows(history)}
    assert witnesses == {"home=Lyon"}


def test_messages_without_stale_parts_are_the_same_objects() -> None:
    history = [user("diet=vegan", 0), user("home=Porto", 1), user("home=Lyon", 2)]
    kept = turns()(history)
    assert kept[0] is history[0]
    assert kept[1] is history[2]
    assert turns()([]) == []


def test_annotated_turns_stay_and_say_why() -> None:
    history = [user("home=Porto", 0), model(TextPart("home=Porto"), day=1), user("home=Lyon", 2)]
    mark = "[no longer true since 2026-01-03: home=Lyon]\nhome=Porto"
    assert contents(turns(mode="annotate")(history)) == [mark, mark, "home=Lyon"]


def test_an_unqualified_oracle_only_annotates() -> None:
    with pytest.warns(UserWarning, match="never measured"):
        processor = SupersededTurns(oracle=RuleOracle(same_slot))
    assert len(processor([user("home=Porto", 0), user("home=Lyon", 1)])) == 2


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="drop, annotate"):
        turns(mode="demote")


def test_the_user_still_speaks_first() -> None:
    history = [user("home=Porto", 0), model(TextPart("ok"), day=0), user("home=Lyon", 1)]
    assert contents(turns()(history)) == [REMOVED, "ok", "home=Lyon"]


def test_the_system_prompt_stays() -> None:
    history = [user("home=Porto", 0, system="Be kind."), user("home=Lyon", 1)]
    assert contents(turns()(history)) == ["Be kind.", REMOVED, "home=Lyon"]


def test_calls_and_results_stay_thinking_without_words_goes() -> None:
    call, result = ToolCallPart("weather", {}, "c"), ToolReturnPart("weather", "sunny", "c")
    history: list[ModelMessage] = [
        user("hi=1", 0),
        model(TextPart("home=Porto"), call, day=0),
        ModelRequest(parts=[result]),
        model(ThinkingPart("hm"), TextPart("home=Porto"), day=1),
        user("home=Lyon", 2),
    ]
    kept = turns()(history)
    assert [list(m.parts) for m in kept[1:3]] == [[call], [result]]
    assert len(kept) == 4


def test_a_prompt_with_a_picture_stays() -> None:
    picture = ["home=Porto", ImageUrl("https://example.org/a.png")]
    history = [user("hi=1", 0), user(picture, 1), user("home=Lyon", 2)]
    assert contents(turns()(history)) == ["hi=1", picture, "home=Lyon"]


def seen_by(agent_options: dict[str, Any], *, sync: bool) -> tuple[list[Any], list[Any]]:
    """Runs two turns; returns what the model saw in the last one, and all_messages()."""
    seen: list[ModelMessage] = []

    def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        seen[:] = messages
        return ModelResponse(parts=[TextPart("ok")])

    agent = Agent(FunctionModel(answer), **agent_options)
    history: list[ModelMessage] = []
    for text in ("diet=vegan", "home=Porto", "home=Lyon"):
        run = (
            agent.run_sync(text, message_history=history)
            if sync
            else asyncio.run(agent.run(text, message_history=history))
        )
        history = run.all_messages()
    return contents(seen), contents(history)


@pytest.mark.parametrize("sync", [True, False])
def test_the_capability_changes_what_the_model_sees_and_nothing_else(sync: bool) -> None:
    plain, _ = seen_by({}, sync=sync)
    assert "home=Porto" in plain
    seen, kept = seen_by({"capabilities": [turns().capability()]}, sync=sync)
    assert "home=Porto" not in seen
    assert "diet=vegan" in seen
    assert "home=Porto" in kept


def test_as_a_history_processor_it_also_shortens_what_is_kept() -> None:
    seen, kept = seen_by({"capabilities": [ProcessHistory(turns())]}, sync=True)
    assert "home=Porto" not in seen
    assert "home=Porto" not in kept


@dataclass
class Deps:
    user_id: str


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


def test_the_tools_add_search_and_ask_the_memory_of_the_runs_user(memory: Memory) -> None:
    calls = [
        ToolCallPart("add_memory", {"text": "home=Lyon"}),
        ToolCallPart("search_memory", {"query": "home"}),
        ToolCallPart("ask_memory", {"question": "home"}),
    ]
    memory.add("home=Porto", user_id="ana")
    memory.add("home=Rome", user_id="ben")
    returned: list[Any] = []

    def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        returned.extend(p.content for p in messages[-1].parts if isinstance(p, ToolReturnPart))
        return ModelResponse(parts=[calls.pop(0) if calls else TextPart("done")])

    tools = memory_toolset(memory, user_id=lambda ctx: ctx.deps.user_id)
    agent = Agent(FunctionModel(answer), deps_type=Deps, toolsets=[tools])
    assert agent.run_sync("hi", deps=Deps(user_id="ana")).output == "done"
    added, found, told = returned
    assert added == "remembered"
    assert [hit["text"] for hit in found] == ["home=Lyon"]
    assert datetime.fromisoformat(found[0]["at"]).tzinfo is not None
    assert told == "home=Lyon"


def test_the_example_shows_a_plain_history_with_the_stale_fact_and_ours_without() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", ROOT / "examples" / "with_pydantic_ai.py"],
        capture_output=True,
        text=True,
        check=True,
    )
    plain, ours = done.stdout.split("gcmem, without superseded turns:")
    assert "I live in Lyon now." in ours.split("search_memory:")[1]
    assert "I live in Porto." in plain
    assert "I live in Porto." not in ours
    assert "I live in Lyon now." in ours
    assert "I'm allergic to peanuts." in ours
    assert "Where do I live, and what must I not eat?" in ours


def test_the_example_in_the_docs_runs() -> None:
    run_docs_example("pydantic-ai")
