from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gcmem.bench.data import instances
from gcmem.bench.data.datasets import LOADERS, load_dataset
from gcmem.bench.data.datasets.factconsolidation import START, frame_of
from gcmem.errors import DatasetNotFoundError, InvalidInputError

FACTS = """Here is a list of facts:
0. Ada Quill was born in the city of Norwick.
1. The capital of Ruritania is Strelsau.
2. Ada Quill is a citizen of Ruritania.
3. The capital of Ruritania is Zenda.
4. Ada Quill was born in the city of Hentzau.
5. Ada Quill was born in the city of Norwick.
6. Tarlenheim has three towers.
"""


def write_json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")
    return path


def mab_row(size: str = "sh_6k", *, context: str = FACTS, **over: Any) -> dict[str, Any]:
    source = f"factconsolidation_{size}"
    row = {
        "context": context,
        "questions": ["What is the capital of Ruritania?", "Where was Ada Quill born?"],
        "answers": [["Zenda", "Zenda town"], ["Norwick"]],
        "metadata": {"source": source, "qa_pair_ids": [f"{source}_no0", f"{source}_no1"]},
    }
    return {**row, **over}


def wiki_row(**over: Any) -> dict[str, Any]:
    row = {
        "question_ID": "7",
        "question": "How many towers has Tarlenheim?",
        "context1": "Tarlenheim has three towers, all round.",
        "context2": "Of the towers, the fourth is the highest.",
        "answer1": "three",
        "answer2": "at least four",
        "contradictType": "Implicit (reasoning required)",
        "samepassage": "Different",
        "merged_context": "",
        "ref_answer": "three|at least four",
        "WikipediaArticleTitle": "Tarlenheim",
        "url": "https://example.org/tarlenheim",
    }
    return {**row, **over}


def write_wiki(path: Path, *rows: dict[str, Any]) -> Path:
    with path.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def lme_row(type_: str = "knowledge-update", **over: Any) -> dict[str, Any]:
    row = {
        "question_id": "q1",
        "question_type": type_,
        "question": "How many goats do I have?",
        "answer": 5,
        "question_date": "2023/06/30 (Fri) 10:00",
        # Out of order, as in the oracle file.
        "haystack_session_ids": ["answer_b", "filler", "answer_a"],
        "haystack_dates": [
            "2023/06/02 (Fri) 09:30",
            "2023/05/25 (Thu) 20:21",
            "2023/05/20 (Sat) 02:21",
        ],
        "haystack_sessions": [
            [
                {"role": "user", "content": "Two more goats today, five now.", "has_answer": True},
                {"role": "assistant", "content": "A proper herd!", "has_answer": False},
            ],
            [{"role": "user", "content": "Any tips for knitting?"}],
            [
                {"role": "user", "content": "Hello."},
                {"role": "assistant", "content": " "},
                {"role": "user", "content": "I keep three goats.", "has_answer": True},
            ],
        ],
        "answer_session_ids": ["answer_a", "answer_b"],
    }
    return {**row, **over}


def locomo_row(**over: Any) -> dict[str, Any]:
    row = {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Mina",
            "speaker_b": "Otto",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Mina", "dia_id": "D1:1", "text": "I bought a kayak."},
                {
                    "speaker": "Otto",
                    "dia_id": "D1:2",
                    "text": "Look at this!",
                    "img_url": ["https://example.org/a.jpg"],
                    "blip_caption": "a photo of a red canoe",
                },
            ],
            "session_2_date_time": "12:05 am on 1 January, 2024",
            "session_2": [{"speaker": "Mina", "dia_id": "D2:1", "text": "Happy new year."}],
            "session_3_date_time": "9:00 am on 2 January, 2024",
        },
        "qa": [
            {"question": "What did Mina buy?", "answer": "a kayak", "category": 4,
             "evidence": ["D1:1"]},
            {"question": "When did they talk?", "answer": 2023, "category": 2,
             "evidence": ["D:1:01; D2:1", "D", "D9:9"]},
            {"question": "What did Otto buy?", "adversarial_answer": "a kayak", "category": 5,
             "evidence": ["D1:1"]},
        ],
    }  # fmt: skip
    return {**row, **over}


def fact(id_: str, key: str, value: str, **over: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "layer": "persistent_facts",
        "key": key,
        "value": value,
        "source": {"type": "user", "identity": None, "authority": "peer"},
        "supersedes": None,
        **over,
    }


def said(minute: int, text: str, **over: Any) -> dict[str, Any]:
    ts = f"2025-11-27T16:{minute:02}:00"
    return {"ts": ts, "type": "conversation_turn", "speaker": "user", "text": text, **over}


def written(minute: int, *facts: dict[str, Any], type_: str = "state_write") -> dict[str, Any]:
    return {"ts": f"2025-11-27T16:{minute:02}:00", "type": type_, "writes": list(facts)}


def asked(minute: int, prompt: str) -> dict[str, Any]:
    truth = {
        "decision": "cut it",
        "decision_type": "freeform",
        "must_mention": ["40 crowns"],
        "must_not_mention": ["70 crowns", {"phrase": "seventy"}],
    }
    ts = f"2025-11-27T16:{minute:02}:00"
    return {"ts": ts, "type": "query", "prompt": prompt, "ground_truth": truth}


def statebench_row(**over: Any) -> dict[str, Any]:
    row = {
        "id": "S1-1",
        "version": "1.0",
        "domain": "procurement",
        "track": "supersession",
        "difficulty": "easy",
        "detection_mode": "explicit",
        "initial_state": {
            "persistent_facts": [fact("F-1", "budget", "70 crowns", ts="2025-11-27T16:00:00")],
            "working_set": [{"content": "Order paper", "ts": "2025-11-27T16:00:00"}],
        },
        "events": [
            said(2, "So we have 70 crowns."),
            asked(3, "What is the budget?"),
            said(5, "Not 70 crowns: it is 40 crowns now."),
            written(
                5, fact("W-AUTO", "budget_v2", "40 crowns", supersedes="budget"),
                type_="supersession",
            ),
            written(4, fact("W-AUTO", "owner", "Mina")),
            asked(9, "What is the budget?"),
            asked(9, "Can we order?"),
        ],
    }  # fmt: skip
    return {**row, **over}


def write_statebench(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_factconsolidation_derives_conflicts_from_equal_frames(tmp_path: Path) -> None:
    file = write_json(tmp_path / "Conflict_Resolution.json", [mab_row()])
    capital, born = load_dataset("factconsolidation", file)
    assert capital.answers == ("Zenda", "Zenda town")
    assert (capital.id, capital.family) == ("factconsolidation_sh_6k_no0", "factconsolidation_sh")
    assert capital.turns is born.turns
    assert set(capital.conflicts) == {
        ("fact-1", "fact-3"),
        ("fact-0", "fact-4"),
        ("fact-4", "fact-5"),
    }
    kinds = [turn.kind for turn in capital.turns]
    assert kinds == ["old", "old", "distractor", "new", "old", "new", "distractor"]
    assert capital.turns[3].at == START + timedelta(minutes=3)
    assert capital.turns[3].state == "Zenda"
    assert capital.metadata["unframed"] == 1


def test_factconsolidation_keeps_one_copy_of_a_context_for_all_rows(tmp_path: Path) -> None:
    file = tmp_path / "Conflict_Resolution.jsonl"
    flat = {**mab_row(), "source": "x_mh_6k", "metadata": None}
    file.write_text(f"{json.dumps(mab_row())}\n{json.dumps(flat)}\n", "utf-8")
    found = load_dataset("factconsolidation", tmp_path)
    assert [i.family[-2:] for i in found] == ["sh", "sh", "mh", "mh"]
    assert found[2].id == "x_mh_6k_no0"
    assert len({id(instance.turns) for instance in found}) == 1


def test_factconsolidation_reads_a_text_with_its_questions(tmp_path: Path) -> None:
    (tmp_path / "context_6k.txt").write_text(FACTS, "utf-8")
    row = {"qa_pair_id": "a", "source": "f_mh_6k", "question": "?", "golds": ["Zenda"]}
    questions = write_json(tmp_path / "questions_6k.json", [row])
    for path in (tmp_path, questions, tmp_path / "context_6k.txt"):
        (instance,) = load_dataset("factconsolidation", path)
        assert (instance.family, instance.answers) == ("factconsolidation_mh", ("Zenda",))
    questions.unlink()
    with pytest.raises(DatasetNotFoundError, match=r"questions_6k\.json"):
        load_dataset("factconsolidation", tmp_path)


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        ("The author of It is Late is Ada Quill.", ("The author of It is Late is", "Ada Quill")),
        ("Ada Quill's child is Jo Quill Jr..", ("Ada Quill's child is", "Jo Quill Jr.")),
        ("Norwick is located in the city of X.", ("Norwick is located in the city of", "X")),
        ("Ada Quill is tall.", None),
    ],
)
def test_a_frame_ends_before_the_object(text: str, frame: tuple[str, str] | None) -> None:
    assert frame_of(text) == frame


def test_parquet_without_pyarrow_names_the_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "Conflict_Resolution-00000-of-00001.parquet"
    file.write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(InvalidInputError, match="pip install pyarrow"):
        load_dataset("factconsolidation", tmp_path)


def test_parquet_is_read_through_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "data" / "Conflict_Resolution-00000-of-00001.parquet"
    file.parent.mkdir()
    file.write_bytes(b"PAR1")
    fake = ModuleType("pyarrow.parquet")
    fake.read_table = lambda path: SimpleNamespace(  # type: ignore[attr-defined]
        to_pylist=lambda: [mab_row()] if path == file else []
    )
    monkeypatch.setitem(sys.modules, "pyarrow", ModuleType("pyarrow"))
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", fake)
    assert len(load_dataset("factconsolidation", tmp_path)) == 2


def test_wikicontradict_has_a_pair_without_an_order(tmp_path: Path) -> None:
    write_wiki(tmp_path / "WikiContradict_dataset_v1_rag_qa.csv", wiki_row(), wiki_row())
    one, two = load_dataset("wikicontradict", tmp_path)
    assert one.id != two.id
    assert [turn.at for turn in one.turns] == [None, None]
    assert (one.ordered, one.conflicts) == (False, (("context1", "context2"),))
    assert one.must_keep == ("context1", "context2")
    assert one.answers == ("three", "at least four")
    assert one.entity == "Tarlenheim"
    assert one.metadata["question_id"] == "7"


def test_longmemeval_updates_conflict_from_earlier_sessions_to_the_latest(tmp_path: Path) -> None:
    file = write_json(tmp_path / "longmemeval_oracle.json", [lme_row()])
    (instance,) = load_dataset("longmemeval", file)
    assert [(turn.id, turn.kind) for turn in instance.turns] == [
        ("answer_a_1", "distractor"),
        ("answer_a_3", "old"),
        ("filler_1", "distractor"),
        ("answer_b_1", "new"),
        ("answer_b_2", "distractor"),
    ]
    assert instance.conflicts == (("answer_a_3", "answer_b_1"),)
    assert instance.turns[1].at == datetime(2023, 5, 20, 2, 21, 2, tzinfo=UTC)
    assert (instance.family, instance.answers) == ("knowledge-update", ("5",))
    assert instance.metadata["question_date"] == "2023-06-30T10:00:00+00:00"
    assert instance.turns[4].role == "assistant"


def test_longmemeval_evidence_of_other_questions_all_holds(tmp_path: Path) -> None:
    rows = [lme_row("multi-session"), lme_row(question_id="q2_abs")]
    write_json(tmp_path / "longmemeval_s", rows)
    multi, abstention = load_dataset("longmemeval", tmp_path)
    assert [turn.id for turn in multi.of_kind("new")] == ["answer_a_3", "answer_b_1"]
    assert not multi.conflicts
    assert {turn.kind for turn in abstention.turns} == {"distractor"}
    assert abstention.metadata["abstention"]
    assert not abstention.conflicts


def test_longmemeval_gives_a_repeated_session_other_ids(tmp_path: Path) -> None:
    row = lme_row(haystack_session_ids=["answer_b", "answer_b", "answer_a"])
    (instance,) = load_dataset("longmemeval", write_json(tmp_path / "l.json", [row]))
    assert len({turn.id for turn in instance.turns}) == len(instance.turns)


def test_locomo_has_named_speakers_and_dated_sessions(tmp_path: Path) -> None:
    write_json(tmp_path / "data" / "locomo10.json", [locomo_row()])
    bought, when, trap = load_dataset("locomo", tmp_path)
    assert [turn.speaker for turn in bought.turns] == ["Mina", "Otto", "Mina"]
    assert bought.turns[1].text == "Look at this! [shares a photo of a red canoe]"
    assert bought.turns[1].at == datetime(2023, 5, 8, 13, 56, 1, tzinfo=UTC)
    assert bought.turns[2].at == datetime(2024, 1, 1, 0, 5, tzinfo=UTC)
    assert [turn.id for turn in bought.of_kind("new")] == ["D1:1"]
    assert (bought.family, bought.entity) == ("locomo_single_hop", "Mina")
    assert when.metadata["evidence"] == ("D1:1", "D2:1", "D9:9")
    assert (when.answers, when.entity) == (("2023",), "Mina and Otto")
    assert (trap.family, trap.answers, trap.of_kind("new")) == ("locomo_adversarial", (), ())
    assert trap.metadata["adversarial_answer"] == "a kayak"


def test_statebench_makes_an_instance_of_every_query(tmp_path: Path) -> None:
    file = write_statebench(tmp_path / "dev.jsonl", statebench_row())
    before, after, order = load_dataset("statebench", file)
    assert [turn.text for turn in before.turns] == [
        "budget: 70 crowns",
        "Order paper",
        "So we have 70 crowns.",
    ]
    assert not before.conflicts
    assert after.turns is order.turns
    kinds = {turn.text: turn.kind for turn in after.turns}
    assert kinds == {
        "budget: 70 crowns": "old",
        "Order paper": "distractor",
        "So we have 70 crowns.": "old",
        "Not 70 crowns: it is 40 crowns now.": "distractor",
        "budget v2: 40 crowns": "new",
        "owner: Mina": "distractor",
    }
    assert after.conflicts == (("t0", "t4"), ("t2", "t4"))
    assert [turn.recorded for turn in after.turns] == [0, 1, 2, 5, 3, 4]
    assert after.answers == ("cut it",)
    assert after.metadata["must_mention"] == ("40 crowns",)
    assert after.metadata["must_not_mention"] == ("70 crowns", {"phrase": "seventy"})


def test_statebench_follows_ids_and_the_hubs_form(tmp_path: Path) -> None:
    implicit = {"detection_cue": "now", "supersedes_fact_id": "F-1", "difficulty": "obvious"}
    events = [
        said(2, "Make it 40.", implicit_supersession=implicit),
        written(3, fact("W-2", "owner", "Mina", supersedes="nobody")),
        asked(9, "?"),
    ]
    row = statebench_row(events=json.dumps(events))
    row["initial_state"] = json.dumps(row["initial_state"])
    (instance,) = load_dataset("statebench", write_statebench(tmp_path / "x.jsonl", row))
    assert instance.conflicts == (("t0", "t2"),)
    assert instance.metadata["unresolved"] == ("nobody",)


@pytest.mark.parametrize("name", LOADERS)
def test_missing_data_says_where_to_get_it(name: str, tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(DatasetNotFoundError, match=r"get it from https://") as caught:
            load_dataset(name, path)
        assert caught.value.path == path
        assert isinstance(caught.value, InvalidInputError)


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="factconsolidation, locomo"):
        load_dataset("trivia", tmp_path)


def test_a_folder_with_several_files_must_be_narrowed(tmp_path: Path) -> None:
    for name in ("dev", "train"):
        write_statebench(tmp_path / f"{name}.jsonl", statebench_row())
    with pytest.raises(InvalidInputError, match=r"dev\.jsonl, train\.jsonl"):
        load_dataset("statebench", tmp_path)


def test_a_limit_cuts_off_and_must_not_be_negative(tmp_path: Path) -> None:
    file = write_statebench(tmp_path / "dev.jsonl", statebench_row())
    assert len(load_dataset("statebench", file, limit=2)) == 2
    assert load_dataset("statebench", file, limit=0) == ()
    with pytest.raises(InvalidInputError, match="limit"):
        load_dataset("statebench", file, limit=-1)


def without(row: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != key}


BROKEN = [
    ("factconsolidation", mab_row(context="no facts"), "row 1: no line"),
    ("factconsolidation", mab_row(context="0. A b.\nand more"), "row 1: line 2 of the context"),
    ("factconsolidation", mab_row(context="0. A b.\n0. A c."), "repeats the fact number 0"),
    ("factconsolidation", mab_row(answers=[["x"]]), "row 1: .* differ in length"),
    ("factconsolidation", mab_row(answers=[["x"], []]), "row 1: .*_no1' has no answer"),
    ("factconsolidation", mab_row("zz_6k"), "row 1: .* neither single-hop"),
    ("factconsolidation", without(mab_row(), "context"), "row 1: 'context' is missing"),
    ("wikicontradict", wiki_row(answer2=" "), "row 1: 'answer2' is empty"),
    ("wikicontradict", without(wiki_row(), "context1"), "row 1: 'context1' is missing"),
    ("longmemeval", lme_row(haystack_dates=[]), "row 1: .* differ in length"),
    ("longmemeval", lme_row(question_date="May"), "row 1: can't read the date 'May'"),
    ("longmemeval", lme_row(question_date="2023/13/01 10:00"), "row 1: month"),
    ("longmemeval", lme_row(answer=None), "row 1: 'answer' must be a text"),
    ("longmemeval", lme_row(haystack_sessions=[["a"], ["b"], ["c"]]), "row 1: "),
    ("locomo", without(locomo_row(), "conversation"), "row 1: 'conversation' is missing"),
    ("locomo", locomo_row(qa=[{"question": "?", "category": 4}]), "question 1: 'answer' is mis"),
    ("locomo", locomo_row(qa=[{"question": "?", "category": 6}]), "question 1: category 6"),
    ("locomo", locomo_row(qa={}), "row 1: 'qa' must be a list"),
    ("statebench", statebench_row(events=[{"type": "nap"}]), "row 1: event 1: unknown event type"),
    ("statebench", statebench_row(events=[said(1, "")]), "row 1: event 1: 'text' is empty"),
    ("statebench", statebench_row(events=[said(1, "a", ts="soon")]), "row 1: event 1: "),
    ("statebench", statebench_row(events="{"), "row 1: "),
    ("statebench", [], "row 1: a row must be an object"),
]


@pytest.mark.parametrize(("name", "row", "message"), BROKEN)
def test_a_broken_row_is_named(name: str, row: Any, message: str, tmp_path: Path) -> None:
    file = write_json(tmp_path / "broken.json", [row])
    with pytest.raises(InvalidInputError, match=message) as caught:
        load_dataset(name, file)
    assert str(caught.value).count(str(file)) == 1


def test_repeated_turns_and_bad_dates_of_a_conversation_are_named(tmp_path: Path) -> None:
    turn = {"speaker": "Mina", "dia_id": "D1:1", "text": "Hi."}
    speakers = {"speaker_a": "Mina", "speaker_b": "Otto"}
    for date, message in (("noon", "can't read the date"), ("1:00 pm on 1 May, 2023", "two turns")):
        sessions = {"session_1": [turn, turn], "session_1_date_time": date}
        row = locomo_row(conversation={**speakers, **sessions})
        with pytest.raises(InvalidInputError, match=f"row 1: {message}"):
            load_dataset("locomo", write_json(tmp_path / "l.json", [row]))


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("a.json", b"{", "not valid JSON"),
        ("a.jsonl", b'{"id": 1}\n{', "line 1: 'initial_state' is missing"),
        ("a.jsonl", b"\n{", "line 2: "),
        ("a.jsonl", b"\xff\xfe", "can't read"),
        ("a.xlsx", b"", "must end in one of"),
        ("a.csv", b'question\n"a"b\n', "not valid CSV"),
    ],
)
def test_a_broken_file_is_named(file: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / file).write_bytes(content)
    with pytest.raises(InvalidInputError, match=message) as caught:
        load_dataset("statebench", tmp_path / file)
    assert file in str(caught.value)


def test_loaded_instances_can_be_saved(tmp_path: Path) -> None:
    wiki = load_dataset("wikicontradict", write_json(tmp_path / "w.json", [wiki_row()]))
    lme = load_dataset("longmemeval", write_json(tmp_path / "l.json", [lme_row()]))
    (tmp_path / "saved.jsonl").write_text(instances.dump([*wiki, *lme]), "utf-8")
    again = instances.load(tmp_path / "saved.jsonl")
    assert again[0] == wiki[0]
    assert (again[1].turns, again[1].conflicts) == (lme[0].turns, lme[0].conflicts)


@pytest.fixture
def real() -> Callable[[str], Path]:
    """The published files, which don't come with the tests."""
    folder = os.environ.get("GCMEM_TEST_DATA")
    if not folder:
        pytest.skip("GCMEM_TEST_DATA names no folder with the published datasets")

    def file(name: str) -> Path:
        path = Path(folder) / name
        if not path.exists():
            pytest.skip(f"GCMEM_TEST_DATA has no {name}")
        return path

    return file


def test_the_published_factconsolidation_is_understood(real: Callable[[str], Path]) -> None:
    found = load_dataset("factconsolidation", real("factconsolidation"))
    assert {i.family for i in found} == {"factconsolidation_sh", "factconsolidation_mh"}
    assert len({id(instance.turns) for instance in found}) == 1
    (turns, conflicts) = (found[0].turns, found[0].conflicts)
    assert (len(turns), found[0].metadata["unframed"]) == (455, 0)
    assert len(conflicts) == len(found[0].of_kind("old")) == len(found[0].of_kind("new")) == 161
    held = {turn.state for turn in turns if turn.kind != "old"}
    single = [i for i in found if i.family == "factconsolidation_sh"]
    assert all(held.intersection(instance.answers) for instance in single)


@pytest.mark.parametrize(("split", "queries"), [("dev", 248), ("train", 1001)])
def test_the_published_statebench_is_understood(
    split: str, queries: int, real: Callable[[str], Path]
) -> None:
    found = load_dataset("statebench", real(f"statebench/{split}.jsonl"))
    assert len(found) == len({instance.id for instance in found}) == queries
    assert not any(instance.metadata["unresolved"] for instance in found)
    for instance in found:
        order = {turn.id: (turn.at, turn.recorded) for turn in instance.turns}
        assert len(order) == len(instance.turns)
        for older, newer in instance.conflicts:
            (old_at, old_seq), (new_at, new_seq) = order[older], order[newer]
            assert old_at is not None
            assert new_at is not None
            assert (old_at, old_seq) < (new_at, new_seq)
