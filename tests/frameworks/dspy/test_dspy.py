from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM

from gcmem import Memory
from gcmem.integrations.dspy import GCMemRetriever
from tests.conftest import day
from tests.frameworks.acme import (
    NEW,
    QUESTION,
    STALE,
    TRUE,
    crowded,
    imported_with_gcmem,
    run_docs,
    run_example,
    told,
)


class Answer(dspy.Module):
    def __init__(self, retrieve: Any) -> None:
        super().__init__()
        self.retrieve = retrieve
        self.respond = dspy.Predict("context: list[str], question -> answer")

    def forward(self, question: str) -> dspy.Prediction:
        return self.respond(context=self.retrieve(question).passages, question=question)

    async def aforward(self, question: str) -> dspy.Prediction:
        found = await self.retrieve.acall(question)
        return await self.respond.acall(context=found.passages, question=question)


def shown_to(model: DummyLM) -> str:
    return str(model.history[-1]["messages"][-1]["content"])


def dummy() -> DummyLM:
    return DummyLM([{"answer": "yes"}] * 20)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_program_reads_what_still_holds(asynchronous: bool) -> None:
    with told(Memory(":memory:")) as memory, dspy.context(lm=dummy()):

        def ask(**search: Any) -> str:
            program = Answer(GCMemRetriever(memory, user_id="acme", **search))
            if asynchronous:
                asyncio.run(program.acall(question=QUESTION))
            else:
                program(question=QUESTION)
            return shown_to(dspy.settings.lm)

        plain, resolved = ask(mode="annotate"), ask()
    assert all(text in plain for text in (TRUE, STALE, NEW))
    assert all(text in resolved for text in (TRUE, NEW))
    assert STALE not in resolved


def test_dspys_own_retrieve_reads_what_still_holds() -> None:
    with told(Memory(":memory:")) as memory:
        plain = GCMemRetriever(memory, user_id="acme", mode="annotate")
        with dspy.context(rm=plain.as_rm):
            assert set(dspy.Retrieve(k=3)(QUESTION).passages) == {TRUE, STALE, NEW}
        with dspy.context(rm=GCMemRetriever(memory, user_id="acme").as_rm):
            assert set(dspy.Retrieve(k=3)(QUESTION).passages) == {TRUE, NEW}
            assert len(dspy.Retrieve(k=1)(QUESTION).passages) == 1


def test_a_prediction_says_what_was_found_and_what_went(memory: Memory) -> None:
    memory.add("x=1", at=day(1))
    (newer,) = memory.add("x=2", at=day(2))
    found = GCMemRetriever(memory)("x")
    assert found.passages == ["x=2"]
    assert found.ids == [newer.id]
    assert found.times == [day(2).isoformat()]
    assert len(found.scores) == 1
    (shadow,) = found.shadows
    assert (shadow.candidate.chunk.text, shadow.witness.chunk.text) == ("x=1", "x=2")


def test_excision_is_filled_up_to_k(memory: Memory) -> None:
    found = GCMemRetriever(crowded(memory), k=4)("x").passages
    assert len(found) == 4
    assert [text for text in found if text.startswith("x=")] == ["x=39"]


def test_what_is_given_to_a_call_goes_first(memory: Memory) -> None:
    memory.add(["x=1", "y=1"], user_id="ana", at=day(1))
    memory.add("x=2", user_id="ben", at=day(2))
    retrieve = GCMemRetriever(memory, user_id="ana")
    assert set(retrieve("x").passages) == {"x=1", "y=1"}
    assert len(retrieve("x", k=1).passages) == 1
    assert retrieve("x", user_id="ben").passages == ["x=2"]
    assert retrieve("x", as_of=day(0)).passages == []


def test_an_agent_searches_by_a_tool_in_the_retrievers_scope(memory: Memory) -> None:
    memory.add(["x=1", "y=1"], user_id="ana", at=day(1))
    memory.add("x=2", user_id="ana", at=day(2))
    memory.add("z=1", user_id="ben", at=day(2))
    retrieve = GCMemRetriever(memory, user_id="ana")
    tool = dspy.Tool(retrieve.search_memory)
    assert (tool.name, list(tool.args)) == ("search_memory", ["query"])
    steps = [
        {
            "next_thought": "I look it up.",
            "next_tool_name": "search_memory",
            "next_tool_args": {"query": "x"},
        },
        {"next_thought": "Done.", "next_tool_name": "finish", "next_tool_args": {}},
        {"reasoning": "It says so.", "answer": "2"},
    ]
    with dspy.context(lm=DummyLM(steps)):
        done = dspy.ReAct("question -> answer", tools=[retrieve.search_memory])(question="x?")
    seen = done.trajectory["observation_0"]
    assert sorted(seen.splitlines()) == ["- [2026-01-02] y=1", "- [2026-01-03] x=2"]
    assert GCMemRetriever(memory, user_id="cleo").search_memory("x") == (
        "Nothing is known about this."
    )


def test_copies_of_a_program_share_the_memory(memory: Memory) -> None:
    memory.add("x=1", at=day(1))
    program = Answer(GCMemRetriever(memory, k=2, mode="demote"))
    for copy in (program.deepcopy(), program.reset_copy()):
        assert copy.retrieve is not program.retrieve
        assert copy.retrieve.memory is memory
        assert (copy.retrieve.k, copy.retrieve.search) == (2, {"mode": "demote"})


def test_an_optimiser_compiles_a_program_that_remembers(memory: Memory) -> None:
    memory.add("x=1", at=day(1))
    trainset = [dspy.Example(question="x", answer="yes").with_inputs("question")]
    with dspy.context(lm=dummy()):
        optimiser = dspy.BootstrapFewShot(
            metric=lambda example, found, trace=None: example.answer == found.answer
        )
        compiled = optimiser.compile(Answer(GCMemRetriever(memory)), trainset=trainset)
    (demo,) = compiled.respond.demos
    assert demo.context == ["x=1"]


def test_a_programs_state_is_saved_without_the_memory(memory: Memory, tmp_path: Path) -> None:
    Answer(GCMemRetriever(memory, k=7)).save(tmp_path / "state.json")
    program = Answer(GCMemRetriever(memory))
    program.load(tmp_path / "state.json")
    assert program.retrieve.k == 7
    assert program.retrieve.memory is memory


def test_the_example_tells_the_story(tmp_path: Path) -> None:
    plain, resolved, asynchronous, left_out = run_example("with_dspy.py", tmp_path)
    assert "Hamburg" in plain
    assert "Hamburg" in left_out
    for line in (resolved, asynchronous):
        assert "Hamburg" not in line
        assert "Munich" in line
        assert "nine members" in line


def test_the_code_in_the_docs_runs(tmp_path: Path) -> None:
    run_docs("DSPy", tmp_path)


def test_importing_gcmem_does_not_import_it(tmp_path: Path) -> None:
    assert not imported_with_gcmem("dspy", tmp_path)
