from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gcmem import Candidate, CandidateSet, Chunk, Memory
from gcmem.defaults import default_classifier
from gcmem.errors import InvalidInputError, UnqualifiedOracleWarning
from gcmem.judge import GoldOracle
from gcmem.judge.fitness import fitness_of, load_fitness, save_fitness
from gcmem.judge.labelled import LabelledPair, LabelledSet, load_pairs, load_sets
from gcmem.judge.qualification import fitness, qualify_pairs, qualify_sets
from gcmem.resolve import Resolver
from gcmem.testing import HashEncoder, RuleOracle
from tests.conftest import NOW, day, same_slot

PAIRS = [
    LabelledPair(older="a=1", newer="a=2", conflict=True, category="update"),
    LabelledPair(older="b=1", newer="b=2", conflict=True, category="update"),
    LabelledPair(older="x", newer="y", conflict=True, category="hidden"),
    LabelledPair(older="c=1", newer="d=1", conflict=False, category="other"),
    LabelledPair(older="e=1", newer="e=2", conflict=False, category="other"),
]


def test_pairs_give_precision_recall_and_figures_by_category() -> None:
    found = qualify_pairs(RuleOracle(same_slot), PAIRS)
    assert (found.precision, found.recall) == (0.6667, 0.6667)
    assert found.by_category["update"] == {"n": 2, "recall": 1.0}
    assert found.by_category["hidden"] == {"n": 1, "recall": 0.0}
    assert found.by_category["other"] == {"n": 2, "false_positive_rate": 0.5}
    assert found.fitness == "marginal"
    assert found.oracle == "rule@1"
    assert found.latency_ms_per_pair > 0


@pytest.mark.parametrize(
    ("precision", "recall", "expected"),
    [(0.99, 0.95, "optimal"), (0.99, 0.51, "marginal"), (1.0, 0.5, "unfit"), (0.4, 0.99, "unfit")],
)
def test_the_papers_rule_decides(precision: float, recall: float, expected: str) -> None:
    assert fitness(precision=precision, recall=recall) == expected


def test_without_a_conflict_there_is_no_recall() -> None:
    with pytest.raises(InvalidInputError, match="recall"):
        qualify_pairs(RuleOracle(same_slot), PAIRS[3:])


def test_sets_are_judged_whole(tmp_path: Path) -> None:
    file = tmp_path / "sets.jsonl"
    turns = [
        {"id": n, "at": day(n).isoformat(), "speaker": "user", "text": f"t{n}"} for n in range(4)
    ]
    row: dict[str, Any] = {
        "question": "q",
        "options": None,
        "turns": turns,
        "conflicts": [[0, 2], [1, 2]],
        "must_keep": [2, 3],
    }
    file.write_text(json.dumps(row) + "\n")
    sets = load_sets(file)
    perfect = qualify_sets(Resolver(GoldOracle([("0", "2"), ("1", "2")])), sets)
    assert (perfect.shadowed, perfect.kept, perfect.fitness) == (1.0, 1.0, "optimal")
    half = qualify_sets(Resolver(GoldOracle([("0", "2"), ("2", "3")])), sets)
    assert (half.shadowed, half.kept, half.fitness) == (0.5, 0.5, "unfit")
    assert (half.precision, half.recall, half.f1) == (0.5, 0.5, 0.5)


def test_in_a_set_any_witness_is_as_good_as_the_one_that_was_labelled() -> None:
    items = tuple(
        Candidate(chunk=Chunk(id=str(n), text=f"t{n}", at=day(n)), relevance=1.0, origin="mtm")
        for n in range(4)
    )
    labelled = LabelledSet(
        candidates=CandidateSet(query="q", items=items),
        conflicts=(("0", "1"), ("0", "2"), ("0", "3")),
        must_keep=("1", "2", "3"),
    )
    found = qualify_sets(Resolver(GoldOracle([("0", "3")])), [labelled])
    assert (found.precision, found.recall, found.kept, found.fitness) == (1.0, 1.0, 1.0, "optimal")


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"older": "a"}',
        '{"older": "a", "newer": "b", "conflict": "yes"}',
        '{"older": null, "newer": "b", "conflict": true}',
        '{"older": "a", "newer": "b", "conflict": true, "question": 5}',
        '{"older": "a", "newer": "b", "conflict": true, "category": 5}',
    ],
)
def test_a_file_that_can_not_be_read_says_where(tmp_path: Path, line: str) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text('{"older": "a", "newer": "b", "conflict": true}\n' + line)
    with pytest.raises(InvalidInputError, match="line 2"):
        load_pairs(file)
    with pytest.raises(InvalidInputError, match="can't read"):
        load_pairs(tmp_path / "missing")


def test_what_was_measured_is_kept_under_the_oracles_id(tmp_path: Path) -> None:
    record = tmp_path / "deep" / "qualified.json"
    assert load_fitness(record) == {}
    found = qualify_pairs(RuleOracle(same_slot), PAIRS)
    save_fitness(found.oracle, found.fitness, record=record)
    assert fitness_of("rule@1", load_fitness(record)) == "marginal"
    for damaged in ("[]", "null", "{", '{"rule@1": "great"}'):
        record.write_text(damaged)
        assert fitness_of("rule@1", load_fitness(record)) is None
    assert fitness_of(default_classifier().id, {}) in ("optimal", "marginal")


def test_a_record_in_the_home_folder_decides_nothing_unless_it_is_passed_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    save_fitness("rule@1", "optimal")

    def removes(**arguments: Any) -> bool:
        oracle = RuleOracle(same_slot)
        with Memory(":memory:", encoder=HashEncoder(), oracle=oracle, **arguments) as memory:
            return memory.removes

    with pytest.warns(UnqualifiedOracleWarning, match="never measured"):
        assert not removes()
    assert removes(qualification=load_fitness())


def test_an_oracle_that_was_never_qualified_only_annotates() -> None:
    with pytest.warns(UnqualifiedOracleWarning, match="require_qualified=False"):
        memory = Memory(
            ":memory:", encoder=HashEncoder(), oracle=RuleOracle(same_slot), clock=lambda: NOW
        )
    memory.add("tea=1", at=day(1))
    memory.add("tea=2", at=day(2))
    result = memory.search("tea")
    assert {item.chunk.text for item in result} == {"tea=1", "tea=2"}
    assert [shadow.candidate.chunk.text for shadow in result.shadows] == ["tea=1"]
    assert len(memory.ask("tea").resolution.kept) == 2
    memory.close()
