from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gcmem.bench.report.captions import CAPTIONS
from gcmem.bench.report.lift import headline, interval, main_oracle, mean_lift, pairs
from gcmem.bench.report.plots import PLOTS
from gcmem.bench.run.outcomes import Outcome, Run
from gcmem.frozen import FrozenDict
from tests.unit.bench.synthetic import FAMILIES, READERS, synthetic_run

RUN = synthetic_run()


def only(*, path: str | None = None, setting: str | None = None) -> Run:
    kept = [
        outcome
        for outcome in RUN.outcomes
        if path in (None, outcome.condition.path)
        and setting in (None, outcome.condition.setting)
        and outcome.ratio is None
    ]
    return Run(outcomes=tuple(kept))


@pytest.mark.parametrize("name", PLOTS)
def test_a_figure_is_written_as_svg_and_png_and_is_the_same_on_a_second_run(
    name: str, tmp_path: Path
) -> None:
    first = PLOTS[name](RUN, tmp_path / "first")
    second = PLOTS[name](RUN, tmp_path / "second")
    assert [path.name for path in first] == [f"{name}.svg", f"{name}.png"]
    assert all(path.stat().st_size > 2_000 for path in first)
    assert first[0].read_bytes() == second[0].read_bytes()


@pytest.mark.parametrize("name", PLOTS)
def test_a_run_without_outcomes_has_no_figures(name: str, tmp_path: Path) -> None:
    assert PLOTS[name](Run(outcomes=()), tmp_path) == []
    failed = tuple(replace(outcome, error="timed out") for outcome in RUN.outcomes)
    assert PLOTS[name](Run(outcomes=failed), tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", set(PLOTS) - {"recall", "stm_effect", "accuracy_k"})
def test_figures_of_gc_mem_need_gc_mem(name: str, tmp_path: Path) -> None:
    assert PLOTS[name](only(path="standard"), tmp_path) == []


@pytest.mark.parametrize("name", ["recall", "stm_effect", "accuracy_k", "accuracy_ratio"])
def test_figures_of_retrieval_need_retrieval(name: str, tmp_path: Path) -> None:
    assert PLOTS[name](only(setting="bag"), tmp_path) == []


def test_no_label_is_lost_with_seven_readers_and_thirteen_families(tmp_path: Path) -> None:
    run = synthetic_run(readers=READERS, families=len(FAMILIES), instances=13)
    families = PLOTS["lift_families"](run, tmp_path)[0].read_text("utf-8")
    assert all(family in families for family in FAMILIES)
    forest = PLOTS["lift_forest"](run, tmp_path)[0].read_text("utf-8")
    assert all(reader in forest for reader in READERS)


def test_every_figure_has_a_caption() -> None:
    assert set(CAPTIONS) == set(PLOTS)


def test_the_lift_is_paired_and_leaves_failed_instances_out() -> None:
    standard, gcmem = (
        next(o for o in RUN.outcomes if o.condition.path == path) for path in ("standard", "gcmem")
    )
    assert standard.condition.retrieval == gcmem.condition.retrieval

    def both(instance: str, before: bool, after: bool, error: str = "") -> list[Outcome]:
        return [
            replace(standard, instance=instance, correct=before),
            replace(gcmem, instance=instance, correct=after, error=error),
        ]

    found = pairs([*both("a", False, True), *both("b", True, True), *both("c", True, False, "x")])
    assert [pair.lift for pair in found] == [1, 0]
    assert mean_lift(found) == 50
    measured = interval(found)
    assert (measured.low, measured.mean, measured.high) == (0, 50, 100)
    assert measured.instances == 2
    assert measured == interval(found)


def test_answers_to_one_instance_count_as_one_draw() -> None:
    own = [pair for pair in pairs(headline(RUN)) if pair.gcmem.instance == "i0"]
    one = [pair for pair in own if pair.condition.dataset == "medium"]
    measured = interval(one)
    assert len(one) > 1
    assert measured.low == measured.high == pytest.approx(measured.mean)


def test_the_headline_keeps_one_oracle_and_one_k_and_no_sweep() -> None:
    kept = headline(RUN)
    assert {o.condition.oracle for o in kept} == {"", "nli"}
    assert {o.condition.k for o in kept} == {10}
    assert {o.ratio for o in kept} == {None}
    assert not any(o.error for o in kept)


def test_gold_labels_are_the_main_oracle_only_where_nothing_else_was_asked() -> None:
    gold = tuple(o for o in RUN.outcomes if o.condition.oracle == "gold")
    lexical = tuple(o for o in RUN.outcomes if o.condition.oracle == "lexical")
    assert main_oracle(Run(outcomes=gold)) == "gold"
    assert main_oracle(Run(outcomes=gold + lexical[:1])) == "lexical"
    assert main_oracle(Run(outcomes=gold + lexical, about=FrozenDict(oracle="gold"))) == "gold"
