"""FactConsolidation, the conflict resolution part of MemoryAgentBench.

- Source: https://huggingface.co/datasets/ai-hyz/MemoryAgentBench, split `Conflict_Resolution`,
  file `data/Conflict_Resolution-00000-of-00001.parquet` (for example revision 7ea0669).
- Licence: MIT.
- Citation: Hu, Wang, McAuley: Evaluating Memory in LLM Agents via Incremental Multi-Turn
  Interactions. ICLR 2026, arXiv:2507.05257.
- Verified: the features in the dataset card (`context`, `questions`, `answers` as lists of lists,
  `metadata.source`, `metadata.qa_pair_ids`); the eight sources `factconsolidation_{sh,mh}_{6k,32k,
  64k,262k}`; the text of the 6k context and its questions. Not seen: the larger contexts.

The loader reads the parquet file (with pyarrow), the same rows as JSON or JSON lines, or a folder
(or one file of it) with `context_<size>.txt` and `questions_<size>.json` (`qa_pair_id`, `source`,
`question`, `golds`).

A context is a list of numbered facts; a larger number is newer. Two facts conflict if they have the
same frame and different objects. The frame is the text before the object: everything up to the last
relation phrase of `RELATIONS`, or up to the last "is" of a sentence "The … is …". Subject and
relation must match exactly, so reworded conflicts are missed, but every conflict found is certain.
`metadata["unframed"]` counts the facts without a known relation.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

from gcmem.bench.data.datasets.reading import (
    Source,
    first,
    in_time_order,
    list_of,
    locate_errors,
    read_rows,
    text_of,
)
from gcmem.bench.data.instances import BenchTurn, Instance, Kind
from gcmem.errors import InvalidInputError
from gcmem.frozen import FrozenDict

SOURCE = Source(
    name="FactConsolidation",
    files=tuple(
        f"{folder}Conflict_Resolution*.{ending}"
        for ending in ("parquet", "jsonl", "json")
        for folder in ("", "data/")
    ),
    download="https://huggingface.co/datasets/ai-hyz/MemoryAgentBench (split Conflict_Resolution)",
)
START = datetime(2020, 1, 1, tzinfo=UTC)
"""The time of serial number 0; each number adds a minute."""
RELATIONS = (
    "was born in the city of",
    "died in the city of",
    "worked in the city of",
    "works in the field of",
    "plays the position of",
    "speaks the language of",
    "was written in the language of",
    "was created in the country of",
    "was created by",
    "was developed by",
    "was founded by",
    "was founded in the city of",
    "was performed by",
    "is a citizen of",
    "is affiliated with the religion of",
    "is associated with the sport of",
    "is employed by",
    "is famous for",
    "is located in the city of",
    "is located in the continent of",
    "is married to",
)
FACT = re.compile(r"(\d+)\.\s+(\S.*)")
FRAMES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(\S.* (?:{'|'.join(RELATIONS)})) (\S.*?)\.?",
        r"(\S.*'s child is) (\S.*?)\.?",
        r"(The \S.* is) (\S.*?)\.?",
    )
)
SIZE = re.compile(r"(?:context|questions)_(\w+)\.(?:txt|json)")


@dataclass(frozen=True, slots=True)
class Context:
    """The facts of one context, shared by many questions."""

    turns: tuple[BenchTurn, ...]
    conflicts: tuple[tuple[str, str], ...]
    unframed: int


def load(path: Path, *, limit: int | None = None) -> tuple[Instance, ...]:
    """Reads every question; questions about one context share the same turns object."""
    if pairs := _text_files(path):
        return first(_from_text(pairs), limit)
    return first(_from_rows(SOURCE.find(path)), limit)


def frame_of(fact: str) -> tuple[str, str] | None:
    """Returns a fact's frame and object, or None for an unknown relation."""
    for pattern in FRAMES:
        if found := pattern.fullmatch(fact.strip()):
            return found[1], found[2]
    return None


def _text_files(path: Path) -> list[tuple[Path, Path]]:
    """Returns the (context, questions) file pairs for a folder or a single file."""
    if path.is_dir():
        texts = sorted(path.glob("context_*.txt"))
    elif path.is_file() and (size := SIZE.fullmatch(path.name)):
        texts = [path.with_name(f"context_{size[1]}.txt")]
    else:
        return []
    pairs = [(text, text.with_name(f"questions_{text.stem[8:]}.json")) for text in texts]
    for file in (file for pair in pairs for file in pair):
        if not file.is_file():
            raise SOURCE.missing(file)
    return pairs


def _from_text(pairs: list[tuple[Path, Path]]) -> Iterator[Instance]:
    for text, questions in pairs:
        try:
            facts = text.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"can't read {text}: {error}") from None
        with locate_errors(text, "the facts"):
            context = _context(facts)
        for row in read_rows(questions):
            with locate_errors(row.file, row.place):
                instance = _instance(
                    context,
                    id_=text_of(row.values, "qa_pair_id"),
                    source=text_of(row.values, "source"),
                    question=text_of(row.values, "question"),
                    golds=list_of(row.values, "golds"),
                )
            yield instance


def _from_rows(file: Path) -> Iterator[Instance]:
    # Single-hop and multi-hop rows of one size may share a text: it is parsed once.
    contexts: dict[str, Context] = {}
    for row in read_rows(file):
        with locate_errors(file, row.place):
            text = text_of(row.values, "context")
            if text not in contexts:
                contexts[text] = _context(text)
            instances = list(_questions(row.values, contexts[text]))
        yield from instances


def _questions(values: Mapping[str, Any], context: Context) -> Iterator[Instance]:
    about = values.get("metadata") or values
    questions, answers = list_of(values, "questions"), list_of(values, "answers")
    source = text_of(about, "source")
    ids = about.get("qa_pair_ids") or [f"{source}_no{n}" for n in range(len(questions))]
    if not len(questions) == len(answers) == len(ids):
        raise ValueError("'questions', 'answers' and 'qa_pair_ids' differ in length")
    for id_, question, golds in zip(ids, questions, answers, strict=True):
        golds = [golds] if isinstance(golds, str) else golds
        yield _instance(context, id_=str(id_), source=source, question=question, golds=golds)


def _instance(context: Context, *, id_: str, source: str, question: str, golds: Any) -> Instance:
    hops = next((hop for hop in ("sh", "mh") if f"_{hop}_" in f"{source}_"), None)
    if hops is None:
        raise ValueError(f"the source {source!r} is neither single-hop (_sh_) nor multi-hop (_mh_)")
    if not golds or not all(isinstance(gold, str) and gold for gold in golds):
        raise ValueError(f"the question {id_!r} has no answer")
    return Instance(
        id=id_,
        family=f"factconsolidation_{hops}",
        question=question,
        turns=context.turns,
        answers=tuple(golds),
        entity="the list of facts",
        conflicts=context.conflicts,
        metadata=FrozenDict(source=source, unframed=context.unframed),
    )


def _context(text: str) -> Context:
    facts = _facts(text)
    frames = {serial: frame_of(fact) for serial, fact in facts.items()}
    slots: dict[str, list[int]] = defaultdict(list)
    for serial in sorted(facts):
        if frame := frames[serial]:
            slots[frame[0]].append(serial)
    objects = {serial: frame[1] for serial, frame in frames.items() if frame}
    pairs = [
        (older, newer)
        for serials in slots.values()
        for older, newer in combinations(serials, 2)
        if objects[older] != objects[newer]
    ]
    superseded = {older for older, _ in pairs}
    current = {newer for _, newer in pairs} - superseded

    def kind(serial: int) -> Kind:
        return "old" if serial in superseded else "new" if serial in current else "distractor"

    turns = in_time_order(
        BenchTurn(
            id=f"fact-{serial}",
            text=fact,
            kind=kind(serial),
            at=START + timedelta(minutes=serial),
            state=objects.get(serial),
            recorded=number,
        )
        for number, (serial, fact) in enumerate(facts.items())
    )
    conflicts = tuple((f"fact-{older}", f"fact-{newer}") for older, newer in pairs)
    return Context(turns, conflicts, unframed=len(facts) - len(objects))


def _facts(text: str) -> dict[int, str]:
    """Returns the facts by serial number; lines before the first one are the heading."""
    facts: dict[int, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        found = FACT.fullmatch(line.strip())
        if found is None and (not facts or not line.strip()):
            continue
        if found is None:
            raise ValueError(f"line {number} of the context is not a numbered fact: {line[:60]!r}")
        if int(found[1]) in facts:
            raise ValueError(f"line {number} of the context repeats the fact number {found[1]}")
        facts[int(found[1])] = found[2]
    if not facts:
        raise ValueError("no line of the context is a numbered fact")
    return facts
