from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import pytest

from gcmem.bench.report import paper
from gcmem.bench.report.compare import compare_runs
from gcmem.bench.report.table import (
    NONE,
    RENDERERS,
    Table,
    points,
    probability,
    to_latex,
    to_markdown,
)
from gcmem.bench.report.tables import TABLES, make_tables
from gcmem.bench.report.tables_main import efficacy, factors
from gcmem.bench.run.outcomes import Condition, Outcome, Run
from gcmem.bench.run.product import product_defaults
from gcmem.defaults import default_oracle
from gcmem.frozen import FrozenDict
from gcmem.settings import Settings

MODES = ("forced-choice", "allow-unclear")
MARKS = {
    "standard": "+---------",
    "timestamp": "+++++-----",
    "time-decay": "++--------",
    "gcmem": "++++++++-e",
    "multi-factor:recency": "++++++++--",
    "multi-factor:recency+relevance+usage": "----------",
}
"""Ten instances a path: + right, - wrong and stale, e failed."""


def condition(path: str, **changes: str | int) -> Condition:
    named = {
        "dataset": "chat-medium",
        "setting": "retrieval",
        "retrieval": "dense",
        "reader": "openai/GPT-4o",
        "mode": "forced-choice",
        "oracle": "kappa" if path == "gcmem" else "",
        **changes,
    }
    return Condition(path=path, **named)  # type: ignore[arg-type]


def answers(made: Condition, marks: str, *, ratio: int | None = None) -> list[Outcome]:
    gcmem = made.path == "gcmem"
    return [
        Outcome(
            condition=made,
            instance=f"{made.dataset}-{ratio or 0}-{number}",
            family="diet",
            severity=1,
            subset="single",
            ratio=ratio,
            correct=mark == "+",
            stale=mark == "-",
            error="timeout" if mark == "e" else "",
            recall_old=0.25,
            recall_new=0.5,
            recall_distractor=0.125,
            shadows=3 if gcmem else 0,
            stale_removed=0.75 if gcmem else 0.0,
            keep_rate=0.9 if gcmem else 1.0,
            true_positives=6 if gcmem else 0,
            false_positives=2 if gcmem else 0,
            false_negatives=4 if gcmem else 0,
            timings_ms=FrozenDict(retrieve=20.0, conflict=100.0, dominance=5.0, read=375.0),
        )
        for number, mark in enumerate(marks)
    ]


def whole_run() -> Run:
    found: list[Outcome] = []
    for dataset in paper.POOLED:
        for mode in MODES:
            for path, marks in MARKS.items():
                for retrieval in ("dense", "paper"):
                    made = condition(path, dataset=dataset, mode=mode, retrieval=retrieval)
                    found += answers(made, marks)
                found += answers(condition(path, dataset=dataset, mode=mode, setting="bag"), marks)
    for ratio, right in ((1, "++"), (100, "+-")):
        for path in ("standard", "gcmem"):
            made = condition(path, dataset="mutation", reader="o4-mini")
            found += answers(made, "++" if path == "gcmem" else right, ratio=ratio)
    return Run(outcomes=tuple(found))


RUN = whole_run()
MADE = {table.name: table for table in make_tables(RUN)}


def row(table: Table, **where: str) -> dict[str, str]:
    """Returns the only row that has these cells."""
    rows = [dict(zip(table.columns, cells, strict=True)) for cells in table.rows]
    (found,) = [r for r in rows if all(r[name] == cell for name, cell in where.items())]
    return found


def part(found: dict[str, str], *names: str) -> list[str]:
    return [found[name] for name in names]


def dense(**more: str) -> dict[str, str]:
    where = {"Dataset": "chat-medium", "Retrieval": "dense", "Mode": "forced-choice"}
    return {**where, **more}


def test_a_whole_run_has_every_table_in_three_formats() -> None:
    assert list(MADE) == list(TABLES)
    for table in MADE.values():
        assert table.rows
        assert len(set(table.columns)) == len(table.columns)
        assert {len(cells) for cells in table.rows} == {len(table.columns)}
        texts = {suffix: render(table) for suffix, render in RENDERERS.items()}
        assert texts["md"].startswith(f"### {table.title}\n\n| ")
        parsed = list(csv.reader(io.StringIO(texts["csv"])))
        assert tuple(parsed[0]) == table.columns
        assert len(parsed) == len(table.rows) + 1
        assert texts["tex"].count(r"\\" + "\n") == len(table.rows) + 1
        assert r"\toprule" in texts["tex"]
        assert texts["tex"].isascii()


def test_the_order_of_the_outcomes_does_not_matter() -> None:
    turned = Run(outcomes=tuple(reversed(RUN.outcomes)))
    assert make_tables(turned) == tuple(MADE.values())


@pytest.mark.parametrize("name", TABLES)
def test_without_data_there_is_no_table(name: str) -> None:
    assert TABLES[name](Run(outcomes=())) is None


def test_a_table_that_needs_more_than_the_run_has_is_left_out() -> None:
    run = Run(outcomes=tuple(answers(condition("standard", dataset="other"), "+-")))
    assert {table.name for table in make_tables(run)} == {
        "latency", "conditions", "retrieval-recall", "keep-rate",
    }  # fmt: skip


def test_tables_tell_the_products_defaults_from_other_settings() -> None:
    defaults = product_defaults()
    ours = {name: defaults[name] for name in ("retrieval", "mode", "reader", "oracle")}
    run = Run(
        outcomes=(
            *answers(condition("gcmem", **ours), "+-"),
            *answers(condition("gcmem", **{**ours, "oracle": "gold"}, k=5), "+-"),
            *answers(condition("standard", **{**ours, "oracle": ""}), "+-"),
            *answers(condition("gcmem", **ours, setting="bag"), "+-"),
        )
    )
    table = {made.name: made for made in make_tables(run)}["keep-rate"]
    assert row(table, Retrieval=ours["retrieval"], Oracle="local")["Not default"] == NONE
    assert row(table, Oracle="gold")["Not default"] == "k, Oracle"
    assert row(table, Path="standard")["Not default"] == "Path"
    assert "Retrieval" in row(table, Retrieval="bag")["Not default"]
    assert f"retrieval {Settings().strategy}, k 10" in table.note
    assert f"{default_oracle().id}, threshold" in table.note
    assert set(MADE["bag-ranking"].column("Not default")) == {"Retrieval, Reader, Oracle"}
    assert "Not default" not in MADE["datasets"].columns


def test_a_report_keeps_the_defaults_of_the_time_of_the_run() -> None:
    earlier = {**product_defaults(), "retrieval": "dense", "oracle_id": "kappa@1"}
    run = Run(outcomes=RUN.outcomes, about=FrozenDict(product_defaults=earlier))
    (table, *_) = make_tables(run)
    assert "Retrieval" not in row(table, **dense())["Not default"]
    assert "retrieval dense" in table.note
    assert "kappa@1" in table.note


def test_baselines_count_what_was_answered_and_compare_in_pairs() -> None:
    found = row(MADE["baselines"], **dense())
    accuracies = part(found, "standard %", "timestamp %", "time-decay %", "gcmem %")
    assert accuracies == ["10.0", "50.0", "20.0", "88.9"]
    # Nine pairs, seven of them gained: 2 / 2**7.
    assert part(found, "ΔGC pp", "p", "n", "errors") == ["+77.8", "0.0156", "9", "1"]
    low, high = found["95 % interval"].strip("[]").split(", ")
    assert 0 < float(low) < 77.8 < float(high) <= 100
    assert found["paper gcmem %"] == NONE
    sweep = row(MADE["baselines"], Dataset="mutation")
    assert part(sweep, "paper standard %", "paper gcmem %") == ["28.9", "92.1*"]


def test_means_over_cells_stand_beside_the_paper() -> None:
    lift = row(MADE["stm-lift"], Dataset="chat-large", Retrieval="paper")
    names = ("standard %", "gcmem %", "ΔGC pp", "cells", "errors")
    assert part(lift, *names) == ["10.0", "88.9", "+77.8", "2", "2"]
    assert part(lift, "paper standard %", "paper ΔGC pp") == ["34.5", "+28.4"]
    head = row(MADE["headline"], Dataset="chat-large", Retrieval="paper")
    assert part(head, "timestamp %", "paper timestamp %") == ["50.0", "67.5"]
    modes = row(MADE["prompt-modes"], Datasets="chat", Retrieval="dense")
    assert modes["allow-unclear ΔGC pp"] == "+77.8"
    assert modes["paper allow-unclear ΔGC pp"] == "+19.9"
    gone = row(MADE["shadows"], Datasets="chat", Retrieval="dense", Mode="forced-choice")
    assert part(gone, "shadows", "datasets", "paper shadows") == ["3.00", "2", "2.30"]
    recall = row(MADE["retrieval-recall"], Dataset="chat-medium", Retrieval="paper")
    assert part(recall, "old %", "new %", "distractor %") == ["25.0", "50.0", "12.5"]
    assert recall["paper new %"] == "98.2"


def test_detectors_pool_the_pairs_and_take_the_papers_classes() -> None:
    found = row(MADE["detectors"], Dataset="chat-medium", Setting="retrieval")
    names = ("precision %", "recall %", "F1", "efficacy")
    assert part(found, *names) == ["75.0", "60.0", "0.67", "Optimal"]
    for figures in paper.DETECTORS.rows.values():
        recall, delta = float(figures["recall"]) / 100, float(figures["delta"])
        assert efficacy(recall=recall, delta=delta) == figures["efficacy"]
    assert efficacy(recall=None, delta=0.1) == NONE


def test_multi_factor_variants_find_their_place_in_the_paper() -> None:
    found = row(MADE["multi-factor"], **dense(Variant="multi-factor:recency+relevance+usage"))
    assert part(found, "accuracy %", "Δ to standard pp") == ["0.0", "-10.0"]
    assert part(found, "paper Medium %", "paper Large %") == ["10.5", "18.9"]
    assert factors("multi-factor:α+β") == factors("multi-factor:recency + relevance")
    assert factors("multi-factor:full") in {key[0] for key in paper.MULTI_FACTOR.rows}
    assert factors("multi-factor:something") == ""


def test_the_bag_is_told_from_retrieval() -> None:
    ranked = row(MADE["bag-ranking"], Datasets="chat")
    assert part(ranked, "Rank", "gcmem %", "shadows") == ["1", "88.9", "3.00"]
    assert part(ranked, "paper rank", "paper shadows") == ["2", "15.70"]
    assert row(MADE["bag-of-facts"], Datasets="chat")["paper ΔGC pp"] == "+40.3"
    own = row(MADE["bag-per-model"], Dataset="chat-large")
    assert part(own, "timestamp %", "n", "errors", "paper n") == ["50.0", "10", "2", "65"]
    across = row(MADE["bag-across"], Dataset="chat-medium")
    assert part(across, "dense ΔGC pp", "bag ΔGC pp") == ["+77.8", "+77.8"]
    assert row(MADE["bag-headline"], Dataset="chat-medium")["paper SD"] == "10.7"


def test_head_to_head_counts_wins_losses_and_ties() -> None:
    found = row(MADE["head-to-head"], **dense(Retrieval="paper"))
    assert part(found, "wins", "losses", "ties", "p", "ahead") == ["3", "0", "6", "0.2500", "gcmem"]
    assert part(found, "paper winner", "paper gap pp") == ["timestamp", "+2.1"]


def test_conditions_latency_sweep_and_keep_rate_say_what_happened() -> None:
    cell = row(MADE["conditions"], **dense())
    assert part(cell, "recall new %", "n", "errors", "gcmem s") == ["50.0", "10", "1", "0.500"]
    assert part(cell, "paper gcmem %", "paper wall s") == ["47.9", "669"]
    timed = row(MADE["latency"], Dataset="chat-large", Retrieval="paper", Path="gcmem")
    assert part(timed, "conflict s", "total s", "n", "errors") == ["0.100", "0.500", "18", "2"]
    assert part(timed, "paper total s", "paper total s (appendix)") == ["15.0", "23.0"]
    swept = row(MADE["sweep"], Path="standard")
    assert part(swept, "1:1 %", "100:1 %", "all %") == ["100.0", "50.0", "75.0"]
    kept = row(MADE["keep-rate"], **dense(Path="gcmem"))
    names = ("still true kept %", "stale removed %", "stale answers %", "abstentions %", "errors")
    assert part(kept, *names) == ["90.0", "75.0", "11.1", "0.0", "1"]


def test_dataset_statistics_stand_beside_the_papers() -> None:
    found = row(MADE["datasets"], Dataset="chat-large")
    assert part(found, "N", "turns", "paper N", "paper turns") == ["65", "2,690", "65", "2,690"]


def test_the_papers_tables_agree_with_each_other_as_printed() -> None:
    assert len(paper.CONDITIONS.rows) == 56
    for (dataset, model, mode), race in paper.HEAD_TO_HEAD.rows.items():
        cell = paper.CONDITIONS.at(dataset, "on", model, mode)
        for path in ("standard", "timestamp", "gcmem"):
            assert race[path] == cell[path]
    for (model,), ranked in paper.BAG_RANKING.rows.items():
        both = [float(paper.BAG_PER_MODEL.at(model, name)["gcmem"]) for name in paper.POOLED]
        assert float(ranked["gcmem"]) == pytest.approx(sum(both) / 2, abs=0.11)
    assert paper.model_name("llm:azure/GPT-4o@2") == "gpt-4o"


def test_a_run_compared_with_itself_is_all_zeros() -> None:
    table = compare_runs(RUN, RUN)
    assert table is not None
    assert set(table.column("B − A pp")) == {"+0.0"}
    assert set(table.column("95 % interval")) == {"[+0.0, +0.0]"}
    assert set(table.column("p (FDR)")) == {"1.0000"}
    assert table.column("A %") == table.column("B %")
    assert "0 are in A only, 0 in B only" in table.note


def test_two_runs_are_matched_by_condition_and_instance() -> None:
    def run(marks: str, other: str) -> Run:
        extra: Sequence[Outcome] = answers(condition("standard", reader=other), "+")
        return Run(outcomes=(*answers(condition("standard"), marks), *extra))

    table = compare_runs(run("+---------", "a"), run("+++++++++e", "b"))
    assert table is not None
    assert len(table.rows) == 1
    found = row(table, Path="standard")
    assert part(found, "A %", "B %", "B − A pp", "p") == ["10.0", "100.0", "+88.9", "0.0078"]
    assert part(found, "sig.", "n", "errors A", "errors B") == ["*", "9", "0", "1"]
    assert "1 are in A only, 1 in B only" in table.note
    assert compare_runs(run("+", "a"), Run(outcomes=())) is None


def test_cells_are_escaped_for_their_format() -> None:
    table = Table(name="t", title="A & B", columns=("a|b", "Δ %"), rows=(("x_1", "97.3*"),))
    assert r"| a\|b | Δ % |" in to_markdown(table)
    assert r"97.3\*" in to_markdown(table)
    latex = to_latex(table)
    assert r"x\_1 & 97.3* \\" in latex
    assert r"a|b & $\Delta$ \% \\" in latex
    assert (points(-0.0001), points(None)) == ("+0.0", NONE)
    assert points(-0.1) == "-10.0"
    assert probability(1e-9) == "<0.0001"
