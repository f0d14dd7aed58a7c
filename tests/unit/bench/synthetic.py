"""A small run made up for the tests of figures and pages."""

from __future__ import annotations

import random
from itertools import product

from gcmem.bench.run.outcomes import Condition, Outcome, Run
from gcmem.frozen import FrozenDict

READERS = (
    "small-reader", "DeepSeek-V3", "o4-mini", "gpt-4.1-mini",
    "a-reader-with-a-very-long-name-instruct", "costly $reader$", "last_reader",
)  # fmt: skip
FAMILIES = (
    "job", "city", "phone number", "marital status", "diet", "pet", "car", "insurance provider",
    "favourite restaurant", "gym", "language", "bank", "holiday destination",
)  # fmt: skip
CHANCES = {"standard": 0.3, "timestamp": 0.5, "time-decay": 0.4, "gcmem": 0.75}
RETRIEVALS = ("dense", "paper", "stratified")


def synthetic_run(
    *, readers: tuple[str, ...] = READERS[:2], families: int = 3, instances: int = 6
) -> Run:
    """Returns a run with every kind of condition, the same on every call."""
    chance = random.Random(7)
    outcomes = []
    for condition in _conditions(readers):
        ratios = (1, 4, 16, 64) if condition.dataset == "sweep" else (None,)
        for ratio, number in product(ratios, range(instances)):
            outcomes.append(_outcome(condition, number, families, ratio, chance))
    return Run(
        outcomes=tuple(outcomes),
        about=FrozenDict(
            oracle="nli",
            started="2026-01-02T03:04:05Z",
            seeds=[0, 1],
            commit="0123456789abcdef" * 2,
            versions={"gcmem": "0.1", "numpy": "2.0"},
            datasets={"medium": {"sha256": "ab" * 32, "instances": instances}},
        ),
    )


def _conditions(readers: tuple[str, ...]) -> list[Condition]:
    made = []
    for reader, path in product(readers, CHANCES):
        for dataset, retrieval in product(("medium", "large"), RETRIEVALS):
            for oracle in ("nli", "lexical", "gold") if path == "gcmem" else ("",):
                made.append(_condition(reader, path, oracle, dataset, retrieval))
        oracle = "nli" if path == "gcmem" else ""
        made.append(_condition(reader, path, oracle, "medium", "dense", setting="bag"))
        made.append(_condition(reader, path, oracle, "sweep", "dense"))
        made += [_condition(reader, path, oracle, "medium", "dense", k=k) for k in (5, 20)]
    return made


def _condition(
    reader: str,
    path: str,
    oracle: str,
    dataset: str,
    retrieval: str,
    *,
    setting: str = "retrieval",
    k: int = 10,
) -> Condition:
    return Condition(
        dataset=dataset, setting=setting, retrieval=retrieval, reader=reader, mode="forced-choice",
        path=path, oracle=oracle, k=k,
    )  # fmt: skip


def _outcome(
    condition: Condition, number: int, families: int, ratio: int | None, chance: random.Random
) -> Outcome:
    asks = condition.path == "gcmem"
    bias = {"gold": 0.2, "nli": 0.0, "lexical": -0.2}.get(condition.oracle, 0.0)
    if condition.stm:
        bias += 0.1
    true = chance.randint(1, 4) if asks else 0
    return Outcome(
        condition=condition,
        instance=f"i{number}",
        family=FAMILIES[number % families],
        severity=number % 3,
        subset="single",
        ratio=ratio,
        correct=chance.random() < CHANCES[condition.path] + bias - 0.02 * (ratio or 0) ** 0.5,
        error="timed out" if number == 5 and condition.path == "timestamp" else "",
        recall_old=0.3,
        recall_new=0.95 if condition.stm else 0.4,
        recall_distractor=0.1,
        shadows=true + (8 if condition.setting == "bag" else 0) if asks else 0,
        keep_rate=0.9 + bias / 3 if asks else None,
        true_positives=true,
        false_positives=chance.randint(0, 1) if asks else 0,
        false_negatives=chance.randint(0, 2) if asks else 0,
    )
