from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest
from training.kappa import mine
from training.kappa.data import (
    load_contrasts,
    load_facts,
    load_families,
    load_mined,
    load_remarks,
    seen,
)
from training.kappa.draw import Draw, Mixture
from training.kappa.evaluate import set_of
from training.kappa.notebooks import MEASURED, Line, Notebook, load_notebooks, notebook_pairs
from training.kappa.rows import draw_rows, load_rows, write_rows
from training.kappa.tasks import UNKNOWN, AnswerRow, PairRow, StanceRow

from gcmem.judge.pairwise import closeness
from gcmem.judge.recipe import shipped_recipe

NOTEBOOK = Notebook(
    "the van",
    {"driver": "Who drives the van?", "fuel": "What does the van run on?"},
    (
        Line("Ada drives the van.", "driver", "Ada"),
        Line("Filled the van up with diesel.", "fuel", "diesel"),
        Line("Ada had the van keys again.", "driver", "Ada"),
        Line("The other van runs on petrol.", None, None),
        Line("Bo took the van out as every day.", "driver", "Bo"),
        Line("Plugged the van in overnight.", "fuel", "electric"),
    ),
)


@pytest.fixture(scope="module")
def draw() -> Draw:
    pools = {"contrast": load_contrasts("train")}
    families = seen(load_families(), "train")
    remarks, notebooks = load_remarks("train"), load_notebooks("train")
    return Draw(families, pools, load_facts("train"), remarks, notebooks, seed=0)


def test_rows_come_back_from_their_file_as_they_were(draw: Draw, tmp_path: Path) -> None:
    rows = draw_rows(draw, times=2)
    write_rows(tmp_path / "made" / "rows.jsonl", rows)
    assert dict(load_rows(tmp_path / "made" / "rows.jsonl")) == dict(rows)
    assert {type(row) for row in rows} == {PairRow, StanceRow, AnswerRow}


def test_only_what_was_put_together_anew_has_no_label(draw: Draw) -> None:
    nothing = dict.fromkeys(Mixture.__dataclass_fields__, 0)
    anew = draw.pairs(Mixture(**nothing | {"recombined": 40, "crossed": 40}))
    labelled = draw.pairs(Mixture(**nothing | {"explicit": 10, "contrast": 10, "remarks": 20}))
    assert {row.label for row in anew} == {None}
    assert {row.label for row in labelled} == {0.0, 1.0}
    hearsay = draw.stances(Mixture(**nothing | {"hearsay": 10}))
    assert {row.label for row in hearsay} == {UNKNOWN}


def test_only_behaviours_of_two_states_conflict_and_only_for_a_question(draw: Draw) -> None:
    nothing = dict.fromkeys(Mixture.__dataclass_fields__, 0)
    changed = draw.pairs(Mixture(**nothing | {"old_new": 40, "clear_old_new": 40}))
    same = {"same_state": 40, "clear_same_state": 40}
    others = draw.pairs(Mixture(**nothing | same | {"neighbours": 40, "clear_neighbours": 40}))
    assert {row.label for row in changed} == {1.0}
    assert all(row.texts[0] for row in changed)
    assert {row.label for row in others} == {0.0}


def test_a_remark_never_conflicts_and_texts_stand_in_a_fixed_order(draw: Draw) -> None:
    nothing = dict.fromkeys(Mixture.__dataclass_fields__, 0)
    rows = draw.pairs(Mixture(**nothing | {"remarks": 60}))
    assert {row.label for row in rows} == {0.0}
    assert all(first < second for _, first, second in (row.texts for row in rows))


def test_no_held_out_remark_or_contrast_is_drawn(draw: Draw) -> None:
    held = {
        line
        for part in ("dev", "test")
        for line in itertools.chain.from_iterable(load_remarks(part))
    } | {pair.newer for part in ("dev", "test") for pair in load_contrasts(part)}
    drawn = {
        text for row in draw_rows(draw, times=3) if isinstance(row, PairRow) for text in row.texts
    }
    # Short lines ("I cycle to work.") stand in texts of two parts; the linter lists them.
    families = seen(load_families(), "train")
    pairs = [*load_contrasts("train"), *(pair for f in families for pair in f.pairs)]
    known = {text for pair in pairs for text in (pair.older, pair.newer)}
    known |= set(itertools.chain.from_iterable(load_remarks("train")))
    for family in families:
        known.update(family.neutral, *family.says.values())
    assert not drawn & (held - known)


def test_lines_of_a_notebook_conflict_where_they_give_one_slot_two_values() -> None:
    pairs = NOTEBOOK.pairs()
    conflicts = {(p.older, p.newer): p.question for p in pairs if p.conflict}
    assert conflicts == {
        ("Ada drives the van.", "Bo took the van out as every day."): "Who drives the van?",
        ("Ada had the van keys again.", "Bo took the van out as every day."): "Who drives the van?",
        (
            "Filled the van up with diesel.",
            "Plugged the van in overnight.",
        ): "What does the van run on?",
    }
    restated = [(p.older, p.newer) for p in pairs if p.category == "notebook/restated"]
    assert restated == [("Ada drives the van.", "Ada had the van keys again.")]


def test_a_notebook_is_measured_on_a_few_pairs_of_every_kind() -> None:
    drawn = notebook_pairs([NOTEBOOK], seed=0)
    kinds = [p.category for p in drawn]
    assert kinds.count("notebook/conflict") == 3
    assert kinds.count("notebook/restated") == 1
    assert kinds.count("notebook/other") == MEASURED
    assert len(set(drawn)) == len(drawn)


def test_rows_of_a_notebook_are_labelled_by_its_slots() -> None:
    nothing = dict.fromkeys(Mixture.__dataclass_fields__, 0)
    draw = Draw(seen(load_families(), "train"), {}, [], [], [NOTEBOOK], seed=0)
    label = {(min(p.older, p.newer), max(p.older, p.newer)): p.conflict for p in NOTEBOOK.pairs()}
    for row in draw.pairs(Mixture(**nothing | {"noted_pairs": 60})):
        assert row.label == label[row.texts[1:]]
    value = {line.text: (line.slot, line.value) for line in NOTEBOOK.lines}
    for stance in draw.stances(Mixture(**nothing | {"noted_stances": 60})):
        slot, said = value[stance.sentence]
        known = slot is not None and stance.question == NOTEBOOK.questions[slot]
        assert (None if stance.label is None else stance.options[stance.label]) == (
            said if known else None
        )


def test_most_pairs_of_a_notebook_are_no_conflict(draw: Draw) -> None:
    nothing = dict.fromkeys(Mixture.__dataclass_fields__, 0)
    rows = draw.pairs(Mixture(**nothing | {"noted_pairs": 2000}))
    assert 0.25 < sum(row.label or 0.0 for row in rows) / len(rows) < 0.35


def test_only_lines_of_two_subjects_that_the_gate_lets_meet_are_mined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in (("LINES", 200), ("ANCHORS", 20), ("PARTNERS", 3)):
        monkeypatch.setattr(mine, name, value)
    met = mine.meetings(random.Random(0))
    gate = shipped_recipe().gate
    assert {line.shown for pair in met for line in pair} == {True, False}
    for one, other in met:
        assert one.subject != other.subject
        asked, first, second = mine.encode([one.question, one.text, other.text])
        close = closeness(first, second, asked, on_topic=gate.on_topic)
        assert close >= gate.closeness - 1e-6


def test_what_was_mined_comes_back_as_no_conflict(tmp_path: Path) -> None:
    path = tmp_path / "mined.jsonl"
    path.write_text('["Where?", "In Porto.", "Tea is ready."]\n', "utf-8")
    (pair,) = load_mined(path)
    assert (pair.question, pair.older, pair.newer) == ("Where?", "In Porto.", "Tea is ready.")
    assert not pair.conflict


def test_a_notebook_is_asked_for_one_slot_and_keeps_what_stands_of_all() -> None:
    driver, fuel = (set_of(NOTEBOOK, slot, options=True) for slot in ("driver", "fuel"))
    assert driver.candidates.options == ("Ada", "Bo")
    assert driver.conflicts == (("0", "4"), ("2", "4"))
    assert fuel.conflicts == (("1", "5"),)
    assert driver.must_keep == fuel.must_keep == ("3", "4", "5")
    assert set_of(NOTEBOOK, "driver", options=False).candidates.options == ()
