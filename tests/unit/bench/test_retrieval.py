"""Recall of evidence: the conversations, the measures, the yardsticks and the tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcmem.bench.data.datasets import load_dataset
from gcmem.bench.data.evidence import Conversation, Question, load_conversations, sample
from gcmem.bench.report.tables_retrieval import SAME_SAMPLE, category_table, figures
from gcmem.bench.report.tables_retrieval import retrieval_table as table_of
from gcmem.bench.run import retrieval
from gcmem.bench.run.retrieval import PLAIN_DENSE, PLAIN_WORDS, Asked, measure, recall
from gcmem.bench.run.yardsticks import BM25, Cosine, best
from gcmem.errors import DatasetNotFoundError, InvalidInputError
from gcmem.testing import HashEncoder
from tests.unit.bench.test_datasets import lme_row, locomo_row, write_json


def memora_session(number: int, *said: str, **over: Any) -> dict[str, Any]:
    row = {
        "period": "weekly",
        "persona": "beekeeper",
        "session_id": number,
        "date": "2025-06-01" if number < 3 else "2025-06-02",
        "conversation": [
            {"turn": place, "speaker": "user_agent" if place % 2 else "ai_agent", "message": text,
             "share_memory": place == 1}
            for place, text in enumerate(said, 1)
        ],
    }  # fmt: skip
    return {**row, **over}


def memora_questions(**over: Any) -> dict[str, Any]:
    asked = {
        "question_id": "hives",
        "question": "How many hives did I buy?",
        "question_date": "2025-06-07",
        "memory_evidence": {"count": 2, "bought": [{"n": 1, "session_id": 1}, {"session_id": 3}]},
        "forgetting_evidence": {"items": [{"value": "smoker", "session_id": 2}]},
    }
    vague = {**asked, "question_id": "vague", "memory_evidence": {"count": 0}}
    del vague["forgetting_evidence"]
    row = {
        "period": "weekly",
        "persona": "beekeeper",
        "questions": {"remembering": [asked], "reasoning": [vague]},
    }
    return {**row, **over}


SESSIONS = (
    memora_session(1, "I bought two hives today.", "Where will you put the hives?"),
    memora_session(2, "The smoker broke.", "Sorry to hear that."),
    memora_session(3, "Another hive came by post.", "How is the weather?", "Rainy."),
)


@pytest.fixture
def memora(tmp_path: Path) -> Path:
    lines = "".join(json.dumps(row) + "\n" for row in SESSIONS)
    (tmp_path / "dev-sessions.jsonl").write_text(lines, "utf-8")
    (tmp_path / "dev-questions.jsonl").write_text(json.dumps(memora_questions()) + "\n", "utf-8")
    return tmp_path


def test_memora_has_dated_turns_and_sessions_to_recall_and_to_forget(memora: Path) -> None:
    hives, vague = load_dataset("memora", memora)
    assert (hives.id, hives.family) == ("beekeeper-weekly-hives", "memora_remembering")
    assert [turn.id for turn in hives.of_kind("new")] == ["1:1", "3:1"]
    assert [turn.speaker for turn in hives.turns[:2]] == ["user", "assistant"]
    assert [str(turn.at)[8:19] for turn in hives.turns[2:5]] == [
        "01 00:00:02", "01 00:00:03", "02 00:00:00",
    ]  # fmt: skip
    assert hives.metadata["sessions_to_recall"] == ("1", "3")
    assert hives.metadata["sessions_to_forget"] == ("2",)
    assert vague.metadata["sessions_to_recall"] == vague.metadata["sessions_to_forget"] == ()


def test_memora_is_read_from_two_named_files_too(memora: Path) -> None:
    both = f"{memora / 'dev-sessions.jsonl'},{memora / 'dev-questions.jsonl'}"
    assert load_dataset("memora", Path(both)) == load_dataset("memora", memora)
    assert len(load_dataset("memora", Path(both), limit=1)) == 1
    with pytest.raises(DatasetNotFoundError):
        load_dataset("memora", memora / "dev-sessions.jsonl")


@pytest.mark.parametrize(
    ("session", "questions", "message"),
    [
        (memora_session(2, "Again."), memora_questions(), "line 4: two sessions of beekeeper"),
        (memora_session(4, "Hm.", date="May"), memora_questions(), "line 4: Invalid isoformat"),
        (memora_session(4, " "), memora_questions(), "line 4: 'message' is empty"),
        (
            memora_session(4, conversation=[{"speaker": "cat", "message": "Miaow."}]),
            memora_questions(),
            "line 4: speaker 'cat' is not one of",
        ),
        (memora_session(4, "Hm."), memora_questions(persona="cook"), "has no session of cook"),
        (
            memora_session(4, "Hm."),
            memora_questions(questions={"reasoning": [{"question_id": "x"}]}),
            r"question 1: 'memory_evidence' is missing",
        ),
    ],
)
def test_a_broken_row_of_memora_is_named(
    session: dict[str, Any], questions: dict[str, Any], message: str, memora: Path
) -> None:
    with (memora / "dev-sessions.jsonl").open("a") as file:
        file.write(json.dumps(session) + "\n")
    (memora / "dev-questions.jsonl").write_text(json.dumps(questions), "utf-8")
    with pytest.raises(InvalidInputError, match=message):
        load_dataset("memora", memora)


def test_locomo_is_one_memory_per_conversation_without_adversarial_questions(
    tmp_path: Path,
) -> None:
    rows = [locomo_row(), locomo_row(sample_id="conv-2")]
    first, second = load_conversations("locomo", write_json(tmp_path / "l.json", rows))
    assert (first.id, second.id) == ("conv-1", "conv-2")
    assert [(q.category, set(q.evidence)) for q in first.questions] == [
        ("single-hop", {"D1:1"}),
        ("temporal", {"D1:1", "D2:1"}),
    ]
    assert [len(session) for session in first.sessions()] == [2, 1]


def lme_rows(count: int) -> list[dict[str, Any]]:
    """Returns questions with sessions of their own; the last one is an abstention question."""
    return [
        lme_row(
            question_id=f"q{n}" if n < count - 1 else f"q{n}_abs",
            haystack_session_ids=[f"answer_b{n}", f"filler{n}", f"answer_a{n}"],
            answer_session_ids=[f"answer_a{n}", f"answer_b{n}"],
        )
        for n in range(count)
    ]


def test_longmemeval_mixes_in_ten_sessions_of_other_questions(tmp_path: Path) -> None:
    file = write_json(tmp_path / "l.json", lme_rows(6))
    found = load_conversations("longmemeval", file, seed=1)
    assert [conversation.id for conversation in found] == ["q0", "q1", "q2", "q3", "q4"]
    third = found[2]
    assert len(third.sessions()) == 13
    # Only its own evidence counts, the outdated turn too.
    assert third.questions[0].evidence == {"answer_a2_3", "answer_b2_1"}
    times = [session[0].at for session in third.sessions()]
    assert times == sorted(times, key=str)
    assert found == load_conversations("longmemeval", file, seed=1)
    assert found != load_conversations("longmemeval", file, seed=2)
    # A sample has the same memories.
    assert set(load_conversations("longmemeval", file, questions=2, seed=1)) < set(found)


def test_memora_is_one_memory_per_persona_and_counts_sessions(memora: Path) -> None:
    (found,) = load_conversations("memora", memora)
    assert [question.evidence for question in found.questions] == [{"1", "3"}]
    assert found.units(["3:2", "1:1"]) == ["3", "1"]


def test_unknown_sets_and_files_without_evidence_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="locomo, longmemeval, memora"):
        load_conversations("statebench", tmp_path)
    file = write_json(tmp_path / "l.json", [locomo_row(qa=[])])
    with pytest.raises(InvalidInputError, match="no question with evidence"):
        load_conversations("locomo", file)


def conversation(id_: str, questions: int) -> Conversation:
    asked = [
        Question(text=f"{id_} {n}?", category="c", evidence=frozenset("x"))
        for n in range(questions)
    ]
    return Conversation(id=id_, turns=(), questions=tuple(asked))


def test_a_sample_is_drawn_by_its_seed_from_all_conversations() -> None:
    whole = [conversation("a", 5), conversation("b", 5)]
    assert sample(whole, None, seed=0) == sample(whole, 10, seed=0) == tuple(whole)
    drawn = sample(whole, 4, seed=0)
    assert sum(len(each.questions) for each in drawn) == 4
    assert drawn == sample(whole, 4, seed=0)
    assert len({sample(whole, 4, seed=seed) for seed in range(5)}) > 1


def test_recall_is_the_share_of_the_evidence_among_the_first_k() -> None:
    evidence = frozenset({"a", "b"})
    assert recall(["x", "a", "y", "b"], evidence, k=2) == 0.5
    assert recall(["x", "a", "y", "b"], evidence, k=4) == 1
    # Several turns of one session find it once.
    assert recall(["a", "a", "a"], evidence, k=3) == 0.5
    assert recall([], evidence, k=3) == 0


def test_bm25_prefers_rare_words_and_short_texts() -> None:
    texts = ["the red kayak", "the red kayak and the red canoe and more", "the goat", "a goat", "-"]
    scores = BM25(texts).scores("Is the KAYAK red?")
    assert np.argsort(-scores, kind="stable").tolist()[:3] == [0, 1, 2]
    assert scores[3] == scores[4] == -np.inf
    # By hand: one text of five has the word; it has two words, where the mean is three.
    one = BM25(["red goat", "red", "a b c d e", "x y z", "k l m n"]).scores("goat")[0]
    rarity = np.log(1 + (5 - 1 + 0.5) / (1 + 0.5))
    assert one == pytest.approx(rarity * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / 3)))


def test_the_best_turns_are_each_counted_once() -> None:
    scores = np.array([0.1, 0.9, 0.8, 0.7, -np.inf])
    assert best(scores, ["a", "b", "b", "c", "d"], 2) == ["b", "c"]
    assert best(scores, ["a", "b", "b", "c", "d"], 9) == ["b", "c", "a"]


def test_cosine_finds_the_same_text() -> None:
    encoder = HashEncoder()
    texts = ["a red kayak", "three goats", "some rain"]
    scores = Cosine(encoder.encode(texts), encoder).scores("three goats")
    assert int(scores.argmax()) == 1
    assert scores[1] == pytest.approx(1, abs=1e-5)


def test_every_row_is_measured_through_the_product_and_the_yardsticks(memora: Path) -> None:
    steps: list[tuple[int, int]] = []
    found = measure(
        load_conversations("memora", memora),
        encoder=HashEncoder(),
        progress=lambda done, total: steps.append((done, total)),
    )
    assert {one.row for one in found} == {"dense", "lexical", "fused", PLAIN_WORDS, PLAIN_DENSE}
    assert all(one.category == "remembering" and one.ms > 0 for one in found)
    # Every turn is among the twenty best, except where no word matches.
    assert all(one.recall[-1] == 1 for one in found if one.row in ("dense", PLAIN_DENSE))
    assert steps[-1] == (8, 8)


def test_a_long_turn_that_is_split_counts_once(tmp_path: Path) -> None:
    row = locomo_row()
    long = " ".join(f"The kayak number {n} is red and has two seats." for n in range(80))
    row["conversation"]["session_1"][0]["text"] = long
    found = measure(
        load_conversations("locomo", write_json(tmp_path / "l.json", [row])), encoder=HashEncoder()
    )
    assert {one.recall[-1] for one in found if one.row in ("dense", PLAIN_DENSE)} == {1.0}


def test_reranking_asks_only_a_sample(memora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = load_conversations("memora", memora)
    more = [whole[0], *whole]
    plain: Callable[..., Any] = retrieval.product_memory
    monkeypatch.setattr(
        retrieval, "product_memory", lambda row, **options: plain("dense", **options)
    )
    found = measure(more, encoder=HashEncoder(), rerank=1)
    counts = {row.row: row.n for row in figures(found)}
    assert counts == {
        "dense": 2, "lexical": 2, "fused": 2, SAME_SAMPLE: 1, "re-ranked": 1,
        PLAIN_WORDS: 2, PLAIN_DENSE: 2,
    }  # fmt: skip
    assert "re-ranked" not in {one.row for one in measure(more, encoder=HashEncoder())}


def one(row: str, number: int, category: str, at_ten: float) -> Asked:
    return Asked(
        row=row,
        question=number,
        category=category,
        recall=(0.0, at_ten, 1.0),
        hit=at_ten > 0,
        ms=float(number),
    )


def test_the_tables_give_means_medians_and_counts() -> None:
    asked = [
        *(
            one("fused", n, "a" if n < 3 else "b", at_ten)
            for n, at_ten in enumerate((0, 0.5, 1, 1))
        ),
        one("re-ranked", 2, "a", 1.0),
    ]
    found = figures(asked)
    table = table_of("demo", found)
    assert table.column("") == ("fused", SAME_SAMPLE, "re-ranked")
    assert table.rows[0] == ("fused", "0.0", "62.5", "100.0", "75.0", "4", "1.5")
    by_category = category_table("demo", found)
    assert by_category.rows == (
        ("a", "3", "50.0", "100.0 (n 1)", "100.0 (n 1)"),
        ("b", "1", "100.0", "–", "–"),
    )
