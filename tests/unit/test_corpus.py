from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from training import lint_corpus
from training.corpus_text import near_duplicates, stem
from training.lint_report import Report

Body = dict[str, Any]
NONE = dict.fromkeys(lint_corpus.MINIMUMS, 0)


def family(name: str = "pets", writer: str = "w01") -> Body:
    """A sound family; its texts carry the name, so that two families share none."""
    pair = {"kind": "number", "older": f"{name} cost ten", "newer": f"{name}: 20", "question": ""}
    other = {
        "kind": "past",
        "older": f"{name} cost ten",
        "newer": f"{name}: 3 once",
        "question": "",
    }
    return {
        "family": name,
        "attribute": "which animal there is",
        "writer": writer,
        "domain": "people",
        "questions": ["Which animal?"],
        "states": {
            "spaniel": [f"The {name} barked all night.", f"A lead hangs by the {name} door."],
            "tabby": [f"Fur on every {name} keyboard.", f"The {name} litter needs doing."],
        },
        "neutral": [f"Rain on the {name} roof."],
        "explicit": [pair],
        "lookalikes": [other],
    }


def lint(folder: Path, *bodies: Body) -> Report:
    lines = [json.dumps(body, ensure_ascii=False) for body in bodies]
    (folder / "w.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return lint_corpus.lint(folder, NONE)


def broken(change: Callable[[Body], object]) -> Body:
    body = family()
    change(body)
    return body


@pytest.fixture(scope="module")
def real() -> Report:
    return lint_corpus.lint()


def test_the_corpus_has_no_errors(real: Report) -> None:
    assert real.errors == []


def test_the_corpus_meets_its_aims(real: Report) -> None:
    assert real.stats["label leakage"] <= lint_corpus.LEAK_AIM
    assert real.stats["exact duplicate pairs"] == 0
    assert real.stats["near-duplicate behaviours"] == 0
    assert real.stats["families with uneven states"] == 0


def test_a_sound_family_passes(tmp_path: Path) -> None:
    report = lint(tmp_path, family(), family("fish", "w11"))
    assert report.errors == []
    assert all("fewer than 40" in line for line in report.warnings)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda b: b.pop("neutral"), "'neutral' is missing"),
        (lambda b: b.update(questions="Which?"), "'questions' is missing or not a list"),
        (lambda b: b.update(extra=1), "unknown key 'extra'"),
        (lambda b: b.update(domain="space"), "unknown domain 'space'"),
        (lambda b: b.update(attribute=" "), "attribute has an empty text"),
        (lambda b: b["states"].pop("tabby"), "fewer than two states"),
        (lambda b: b["states"].update(tabby=[]), "state 'tabby' is empty"),
        (lambda b: b["states"]["tabby"].append(""), "state 'tabby' has an empty text"),
        (lambda b: b["explicit"][0].update(kind="past"), "unknown kind 'past'"),
        (lambda b: b["lookalikes"][0].pop("question"), "needs kind, older, newer and question"),
        (lambda b: b["lookalikes"][0].update(question=None), "a value that is no text"),
        (lambda b: b["explicit"][0].update(newer=""), "explicit[0] has an empty text"),
        (lambda b: b["explicit"][0].update(newer=b["explicit"][0]["older"]), "with itself"),
    ],
)
def test_a_wrong_shape_is_an_error(
    tmp_path: Path, change: Callable[[Body], object], said: str
) -> None:
    (error,) = lint(tmp_path, broken(change)).errors
    assert error.startswith("schema: w.jsonl:1: ")
    assert said in error


@pytest.mark.parametrize(("line", "said"), [("{", "not JSON"), ("[]", "not an object")])
def test_a_line_that_is_no_object_is_an_error(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "w.jsonl").write_text(line + "\n", "utf-8")
    (error,) = lint_corpus.lint(tmp_path, NONE).errors
    assert said in error


def test_too_few_is_an_error(tmp_path: Path) -> None:
    lint(tmp_path, family())
    errors = lint_corpus.lint(tmp_path).errors
    assert [error.split()[2].rstrip(",") for error in errors] == list(lint_corpus.MINIMUMS)


def test_a_duplicate_inside_a_state_is_an_error(tmp_path: Path) -> None:
    body = family()
    body["states"]["tabby"].append(body["states"]["tabby"][0].upper())
    (error,) = lint(tmp_path, body).errors
    assert error.startswith("duplicate: 'FUR ON EVERY PETS KEYBOARD.'")


def test_a_duplicate_elsewhere_is_a_warning(tmp_path: Path) -> None:
    body, other = family(), family("fish")
    other["states"]["spaniel"].append(body["states"]["tabby"][0])
    other["lookalikes"].append(body["lookalikes"][0])
    report = lint(tmp_path, body, other)
    assert report.errors == []
    assert sum(line.startswith("duplicate: ") for line in report.warnings) == 2
    assert report.stats["exact duplicate behaviours and neutral lines"] == 1
    assert report.stats["exact duplicate pairs"] == 1


def test_near_duplicates_are_found() -> None:
    texts = [
        "She walked the dog round the old harbour at six",
        "Nothing like the others",
        "She walked the dog round the old harbour at seven",
        "Yes",
        "yes!",
    ]
    assert near_duplicates(texts) == [(0, 2, 0.8), (3, 4, 1.0)]


def test_near_duplicate_behaviours_are_a_warning(tmp_path: Path) -> None:
    body = family()
    body["states"]["tabby"] += ["One two three four five six.", "One two three four five seven."]
    report = lint(tmp_path, body)
    assert report.stats["near-duplicate behaviours"] == 0
    body["states"]["tabby"] += ["One two three four five six eight."]
    assert lint(tmp_path, body).stats["near-duplicate behaviours"] == 1


@pytest.mark.parametrize(
    "forms",
    ["rent rents renting rented renter", "study studies", "move moved moving", "plan planned"],
)
def test_forms_of_a_word_share_a_stem(forms: str) -> None:
    assert len({stem(form) for form in forms.split()}) == 1


def test_a_leaked_label_is_a_warning(tmp_path: Path) -> None:
    body = family()
    body["states"]["spaniel"].append("Two spaniels asleep on my feet.")
    report = lint(tmp_path, body)
    assert report.stats["label leakage"] == 0.2
    assert report.stats["families with most leakage"] == {"pets": 0.2}
    assert any(line.startswith("leakage: ") for line in report.warnings)


def test_a_stem_of_every_label_does_not_tell(tmp_path: Path) -> None:
    body = family()
    body["states"] = {"happy flyer": ["Flying to Oslo."], "afraid of flying": ["By coach."]}
    report = lint(tmp_path, body)
    assert report.stats["label leakage"] == 0.5
    assert report.stats["label leakage, stems that tell states apart"] == 0


def test_uneven_states_are_a_warning(tmp_path: Path) -> None:
    body = family()
    body["states"]["tabby"] += ["Purring under the stove.", "Scratched the sofa again."]
    assert any(line.startswith("balance: ") for line in lint(tmp_path, body).warnings)


def test_the_balance_of_pairs_is_measured(tmp_path: Path) -> None:
    body = family()
    body["explicit"].append(
        {"kind": "place", "older": "Leeds", "newer": "We live in York now.", "question": "Where?"}
    )
    stats = lint(tmp_path, body).stats["explicit pairs"]
    assert stats["kinds"] == {"number": 1, "place": 1}
    assert stats["newer line has an update cue"] == 0.5
    assert stats["older line is the longer"] == 0.5
    assert stats["has a question"] == 0.5


def test_a_text_shared_with_a_held_out_family_is_an_error(tmp_path: Path) -> None:
    body, held = family(), family("fish", "w11")
    held["neutral"].append(body["explicit"][0]["older"])
    (error,) = lint(tmp_path, body, held).errors
    assert error.startswith("parts: 'pets cost ten'")
    assert "test families (fish / neutral)" in error


def test_a_text_nearly_shared_with_a_held_out_family_is_a_warning(tmp_path: Path) -> None:
    body, held = family(), family("fish", "w12")
    body["neutral"].append("One two three four five six.")
    held["neutral"].append("One two three four five six eight.")
    report = lint(tmp_path, body, held)
    assert report.errors == []
    assert report.stats["of these, with a family held out whole"] == 1


def test_a_line_shared_by_pairs_of_two_parts_is_a_warning(tmp_path: Path) -> None:
    body = family()
    pair = body["explicit"][0]
    body["explicit"] = [pair | {"newer": f"It is {n}."} for n in range(60)]
    report = lint(tmp_path, body)
    assert report.errors == []
    assert any("is in train" in line and "and dev" in line for line in report.warnings)


def test_a_held_out_family_with_another_writer_is_an_error(tmp_path: Path) -> None:
    held = family(writer="w11")
    held["states"] = {"spaniel": ["Muddy paws."], "tabby": ["Up a tree."]}
    held["neutral"], held["explicit"], held["lookalikes"] = ["Wind."], [], []
    errors = lint(tmp_path, family(), held).errors
    assert errors == [
        "parts: the family 'pets' has held-out and other writers: ['w01', 'w11']",
    ]


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ([], "schema: remarks.jsonl:1: needs writer, topic and lines"),
        (["Tea.", " "], "schema: remarks.jsonl:1: needs writer, topic and lines"),
        (["Tea is ready.", "tea is  ready."], "duplicate: remark 'tea is ready.'"),
    ],
)
def test_a_topic_needs_different_remarks(tmp_path: Path, lines: list[str], error: str) -> None:
    row = {"writer": "w51", "topic": "tea", "lines": lines}
    (tmp_path / "remarks.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    assert lint(tmp_path, family()).errors == [error]


@pytest.mark.parametrize(
    ("questions", "lines", "error"),
    [
        ({"fuel": "What fuel?"}, [("fuel", "gas")], "slot 'fuel' needs two to 5 values"),
        ({"fuel": "What fuel?"}, [("fuel", "gas"), ("fuel", "Gas")], "slot 'fuel' needs two to 5"),
        ({}, [("fuel", "gas"), ("fuel", "coal")], "every slot needs lines and a question"),
        ({"fuel": "What fuel?"}, [("fuel", None)], "slot and value go together: 'Line 0.'"),
    ],
)
def test_a_notebook_needs_slots_with_values_to_tell_apart(
    tmp_path: Path,
    questions: dict[str, str],
    lines: list[tuple[str, str | None]],
    error: str,
) -> None:
    noted = [{"slot": s, "value": v, "text": f"Line {n}."} for n, (s, v) in enumerate(lines)]
    row = {"writer": "w61", "subject": "the stove", "questions": questions, "lines": noted}
    (tmp_path / "notebooks.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    assert lint(tmp_path, family()).errors[0].startswith(f"schema: notebooks.jsonl:1: {error}")


def test_the_command_says_and_returns_what_it_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lint(tmp_path, family())
    assert lint_corpus.main(["--corpus", str(tmp_path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["stats"]["families"] == 1
    assert lint_corpus.main(["--corpus", str(tmp_path)]) == 1
    assert "4 errors, 1 warnings" in capsys.readouterr().out
