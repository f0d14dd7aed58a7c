from __future__ import annotations

import json
import random
import statistics
from pathlib import Path

import pytest

from gcmem.bench.data.build import DATASETS, RATIOS, build
from gcmem.bench.data.counts import whole_numbers
from gcmem.bench.data.instances import dump, load
from gcmem.bench.data.labelled import pairs, sets, write_jsonl
from gcmem.bench.data.leakage import leakage, names_state
from gcmem.bench.data.pool import distractors, families
from gcmem.bench.data.shipped import shipped, shipped_hash
from gcmem.bench.report.cards import FOLDER, card
from gcmem.bench.report.describe import describe
from gcmem.errors import InvalidInputError
from gcmem.judge.labelled import load_pairs, load_sets

CORPUS = Path(__file__).parents[3] / "training" / "corpus"


@pytest.mark.parametrize("name", DATASETS)
def test_the_shipped_dataset_is_what_its_seed_builds(name: str) -> None:
    assert shipped(name) == build(name)
    assert len(shipped_hash(name)) == 64


@pytest.mark.parametrize("name", DATASETS)
def test_no_sentence_repeats_within_an_instance(name: str) -> None:
    for instance in shipped(name):
        assert len({turn.text for turn in instance.turns}) == len(instance.turns)


def test_the_chat_datasets_hit_the_papers_totals() -> None:
    medium, large = (describe(n, shipped(n)) for n in ("chat-medium", "chat-large"))
    assert (medium.instances, medium.families, medium.severities) == (48, 12, 4)
    assert (medium.old_and_new, medium.turns) == (1464, 2033)
    assert medium.old == pytest.approx((27.5, 14.9), abs=0.1)
    assert medium.new == pytest.approx((3.0, 1.2), abs=0.1)
    assert (large.instances, large.families, large.severities) == (65, 13, 5)
    assert (large.old_and_new, large.turns) == (1950, 2690)
    assert large.old == pytest.approx((27.0, 13.4), abs=0.1)


def test_the_sweep_has_the_papers_instances_and_chunks_over_four_models() -> None:
    instances = shipped("mutation")
    assert 4 * len(instances) == 2016
    assert 4 * sum(len(i.turns) for i in instances) == 137_760
    for ratio in RATIOS:
        own = [i for i in instances if i.metadata["ratio"] == ratio]
        assert len(own) == 84
        assert {len(i.of_kind("old")) for i in own} == {ratio}


@pytest.mark.parametrize("name", DATASETS)
def test_the_answer_is_the_newest_state_and_nothing_newer_contradicts_it(name: str) -> None:
    for instance in shipped(name):
        new = instance.of_kind("new")
        assert {turn.state for turn in new} == {instance.answer}
        assert instance.answer in instance.options
        olds = {older for older, _ in instance.conflicts}
        assert not olds & {turn.id for turn in new}
        assert olds == {turn.id for turn in instance.of_kind("old")}


def test_the_hard_subsets_are_what_they_say() -> None:
    by_subset = {i.subset: i for i in shipped("chat-hard")}
    chained, returning = by_subset["chained"], by_subset["returning"]
    assert len({t.state for t in chained.of_kind("old", "new")}) == 3
    assert {t.state for t in returning.of_kind("old")} > {returning.answer}
    concurrent = by_subset["concurrent"]
    assert concurrent.entity in concurrent.question or "Heron" in concurrent.question
    assert {t.speaker for t in concurrent.of_kind("other")}.isdisjoint({concurrent.entity})
    late = by_subset["late"]
    newest = max(t.recorded for t in late.of_kind("new"))
    assert sum(t.recorded > newest for t in late.of_kind("old")) == 4


def test_another_seed_gives_another_dataset() -> None:
    assert build("chat-medium", seed=1) != build("chat-medium")
    with pytest.raises(InvalidInputError, match="chat-hard"):
        build("chat-small")


def test_instances_survive_a_file(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    instances = shipped("chat-hard")
    path.write_text(dump(instances), "utf-8")
    assert load(path) == instances
    path.write_text('{"id": "a"}\n', "utf-8")
    with pytest.raises(InvalidInputError, match="line 1"):
        load(path)


def test_the_pool_shares_no_sentence_with_the_training_corpus() -> None:
    trained = set()
    for path in CORPUS.glob("*.jsonl"):
        for line in path.read_text("utf-8").splitlines():
            trained |= {text.casefold().strip(" .!?") for text in _texts(json.loads(line))}
    assert len(trained) > 40_000
    ours = [line.text for line in distractors()]
    for family in families():
        ours += [line.text for lines in family.states.values() for line in lines]
        ours += [text for said in family.statements.values() for text in said]
        ours += family.invariants
    assert not [text for text in ours if text.casefold().strip(" .!?") in trained]


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for item in inner for text in _texts(item)]


def test_the_pool_is_large_enough() -> None:
    assert len(families()) == 13
    assert len(distractors()) >= 600
    for family in families():
        assert 2 <= len(family.states) <= 3
        assert len(family.invariants) >= 12
        assert all(len(lines) >= 110 for lines in family.states.values())


@pytest.mark.parametrize("name", ["chat-medium", "chat-large"])
def test_states_are_hardly_ever_named_and_words_do_not_tell_old_from_new(name: str) -> None:
    whole = leakage(shipped(name), families())[-1]
    assert whole.named <= 0.03
    assert 0.42 <= whole.told_apart <= 0.58


def test_the_leakage_rater_sees_forms_of_a_word() -> None:
    assert names_state("My tenants' lease ends.", ["tenant"])
    assert names_state("out of work again", ["out of work"])
    assert not names_state("The tenor sang.", ["tenant"])


def test_labelled_pairs_and_sets_can_be_qualified_on(tmp_path: Path) -> None:
    instances = shipped("chat-hard")
    assert write_jsonl(pairs(instances), tmp_path / "p.jsonl") > 500
    assert write_jsonl(sets(instances), tmp_path / "s.jsonl") == len(instances)
    labelled = load_pairs(tmp_path / "p.jsonl")
    assert {p.category for p in labelled} == {
        "old/new", "same state", "distractor", "invariant", "other entity",
    }  # fmt: skip
    assert all(p.conflict == (p.category == "old/new") for p in labelled)
    assert len(load_sets(tmp_path / "s.jsonl")) == len(instances)


@pytest.mark.parametrize(("count", "total", "deviation"), [(48, 1320, 14.9), (10, 50, 0.0)])
def test_whole_numbers_have_the_sum_and_the_spread(
    count: int, total: int, deviation: float
) -> None:
    found = whole_numbers(count, total, deviation, least=1, most=90, rng=random.Random(0))
    assert sum(found) == total
    assert statistics.stdev(found) == pytest.approx(deviation, abs=0.05)


@pytest.mark.parametrize("name", DATASETS)
def test_the_card_says_what_the_data_is(name: str) -> None:
    assert (FOLDER / f"{name}.md").read_text("utf-8") == card(name), (
        "python -m gcmem.bench.report.cards"
    )
