"""Writes the cards of the shipped datasets: `python -m gcmem.bench.report.cards`."""

from __future__ import annotations

from pathlib import Path

from gcmem.bench.data.build import DATASETS, RATIOS, SEED, build
from gcmem.bench.data.instances import dump
from gcmem.bench.data.leakage import leakage
from gcmem.bench.data.pool import distractors, families
from gcmem.bench.data.shipped import shipped, shipped_hash, write_shipped
from gcmem.bench.report.describe import describe

FOLDER = Path(__file__).parents[1] / "data" / "sets"
WHAT = {
    "chat-medium": "Chat-Medium of *The Immutable Past*, built anew: the paper's was not released.",
    "chat-large": "Chat-Large of *The Immutable Past*, built anew: the paper's was not released.",
    "mutation": "The Temporal Mutation Benchmark, built anew: accumulation ratios N:M of "
    + ", ".join(f"{r}:1" for r in RATIOS)
    + "; 84 instances per ratio. Over four models that is 2,016 experiment instances and 137,760 "
    "chunks.",
    "chat-hard": "Ours: states that change twice (`chained`), that come back (`returning`), three "
    "people with the same attribute of whom one changes (`concurrent`), old observations that are "
    "recorded late (`late`), and many old facts that stay true (`single`).",
}


def card(name: str) -> str:
    """Returns the card of a dataset."""
    instances = shipped(name)
    about = describe(name, instances)
    leaks = leakage(instances, families())[-1]
    lines = sum(len(lines) for f in families() for lines in f.states.values())
    subsets = ", ".join(f"{subset} {count}" for subset, count in about.by_subset.items())
    roles = ", ".join(f"{role} {count:,}" for role, count in about.by_role.items())
    return f"""# {name}

{WHAT[name]}

- **File**: `{name}.jsonl.gz`, SHA-256 of the JSONL inside: `{shipped_hash(name)}`
- **Made by**: `gcmem bench data build {name} --out FILE` (seed {SEED}), from the pool in
  `gcmem/bench/data/lines`: {len(families())} attribute families, {lines:,} behaviours, \
{len(distractors())} distractors, written line by line
  by a large language model in the roles of several writers, none of whom saw κ's training corpus.
  A test proves that the two share no sentence.
- **Licence**: Apache-2.0

| | |
|---|---:|
| instances | {about.instances} |
| entity types / severity tiers | {about.families} / {about.severities} |
| old turns, mean (SD) | {about.old[0]} ({about.old[1]}) |
| new turns, mean (SD) | {about.new[0]} ({about.new[1]}) |
| distractors and invariants, mean (SD) | {about.others[0]} ({about.others[1]}) |
| old and new turns | {about.old_and_new:,} |
| turns | {about.turns:,} |
| by role | {roles} |
| by subset | {subsets} |
| state named in a turn (`gcmem bench data leakage {name}`) | {leaks.named:.1%} |
| old and new told apart by words (chance: 50 %) | {leaks.told_apart:.1%} |

## Schema
One instance per line: `id`, `family` (the entity type), `severity` (1: a matter of taste, 5: a
broken system), `subset`, `entity`, `question`, `options`, `answer` (the newest state), `conflicts`
(gold pairs of turn ids, older first), `turns`. A turn: `id`, `text`, `kind` (`old`, `new`,
`distractor`, `invariant`: an old fact near the topic that stays true, `other`: another person's
state), `at` (when it happened), `recorded` (its position in order of arrival), `role`, `speaker`,
`state`. Behaviours imply the state and rarely name it; no sentence repeats within an instance.

## Limits
English, invented people, one writer's idea of a chat: turns are not replies to each other. Some
lines let a careful reader infer another family's state. Severity is a judgement.
"""


def main() -> None:
    """Builds every dataset and writes it with its card."""
    for name in DATASETS:
        write_shipped(dump(build(name)), FOLDER / f"{name}.jsonl.gz")
        (FOLDER / f"{name}.md").write_text(card(name), "utf-8")


if __name__ == "__main__":
    main()
