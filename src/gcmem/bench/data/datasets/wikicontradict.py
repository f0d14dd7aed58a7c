"""WikiContradict: pairs of Wikipedia passages that contradict each other, without an order.

- Source: https://huggingface.co/datasets/ibm-research/Wikipedia_contradict_benchmark (formerly
  `ibm/…`), file `WikiContradict_dataset_v1_rag_qa.csv`, 253 rows (for example revision c20e361).
- Licence: MIT; the passages are Wikipedia's text.
- Citation: Hou et al.: WikiContradict: A Benchmark for Evaluating LLMs on Real-World Knowledge
  Conflicts from Wikipedia. NeurIPS 2024, arXiv:2406.13805.
- Verified in several independent public readers, not in the file itself: its name, that it is
  CSV, and the columns `question_ID`, `question`, `context1`, `context2`, `answer1`, `answer2`,
  `contradictType`, `samepassage`, `merged_context`, `ref_answer`, `WikipediaArticleTitle`, `url`.

The loader reads the CSV file, or the same rows as JSON, JSON lines or parquet (with pyarrow). Both
passages are `new`: neither supersedes the other, so neither may be removed. A right answer gives
both of `answers`. Ids are row numbers, because a `question_ID` may repeat.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gcmem.bench.data.datasets.reading import Row, Source, first, locate_errors, read_rows, text_of
from gcmem.bench.data.instances import BenchTurn, Instance
from gcmem.frozen import FrozenDict

SOURCE = Source(
    name="WikiContradict",
    files=("WikiContradict_dataset*.csv",),
    download="https://huggingface.co/datasets/ibm-research/Wikipedia_contradict_benchmark",
)
KEPT = {
    "question_ID": "question_id",
    "contradictType": "contradict_type",
    "samepassage": "same_passage",
    "ref_answer": "ref_answer",
    "url": "url",
}


def load(path: Path, *, limit: int | None = None) -> tuple[Instance, ...]:
    """Reads every row: two passages, their conflict, and the answer from each."""
    return first(_instances(SOURCE.find(path)), limit)


def _instances(file: Path) -> Iterator[Instance]:
    for number, row in enumerate(read_rows(file), 1):
        with locate_errors(file, row.place):
            instance = _instance(row, number=number)
        yield instance


def _instance(row: Row, *, number: int) -> Instance:
    values = row.values
    answers = text_of(values, "answer1"), text_of(values, "answer2")
    turns = tuple(
        BenchTurn(
            id=f"context{side}",
            text=text_of(values, f"context{side}"),
            kind="new",
            at=None,
            role="document",
            speaker="Wikipedia",
            state=answer,
            recorded=side - 1,
        )
        for side, answer in enumerate(answers, 1)
    )
    return Instance(
        id=f"wikicontradict-{number}",
        family="wikicontradict",
        question=text_of(values, "question"),
        turns=turns,
        answers=answers,
        entity=str(values.get("WikipediaArticleTitle") or "the article"),
        conflicts=((turns[0].id, turns[1].id),),
        ordered=False,
        metadata=FrozenDict(
            {name: str(values[key]) for key, name in KEPT.items() if values.get(key) is not None}
        ),
    )
