"""LoCoMo: questions about the conversations of two people over many months.

- Source: https://github.com/snap-research/locomo, file `data/locomo10.json` (zipped in
  the first commits); ten conversations, 1,986 questions.
- Licence: CC BY-NC 4.0 (no commercial use), according to its users; see the repository.
- Citation: Maharana et al.: Evaluating Very Long-Term Conversational Memory of LLM Agents.
  ACL 2024, arXiv:2402.17753.
- Verified in the repository's README and evaluation code: `sample_id`, `conversation` with
  `speaker_a`, `speaker_b`, `session_<n>`, `session_<n>_date_time`, turns of `speaker`, `dia_id`,
  `text`, `blip_caption`, and `qa` of `question`, `answer`, `category`, `evidence`. Verified in
  other public readers only: `adversarial_answer`, the names of the categories, dates such as
  "1:56 pm on 8 May, 2023", and the flaws of `evidence`: several ids in one text, "D:11:26",
  "D30:05", a bare "D", ids without a turn.

Turns with evidence are `new`. No turn is annotated as superseded, so there are no conflicts. An
adversarial question (category 5) has no answer: its evidence turns are `distractor`s, and the
tempting wrong answer is in the metadata. A picture is represented by its caption.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from gcmem.bench.data.datasets.reading import (
    MONTHS,
    Source,
    first,
    list_of,
    locate_errors,
    read_rows,
    text_of,
    utc_time,
)
from gcmem.bench.data.instances import BenchTurn, Instance
from gcmem.frozen import FrozenDict

SOURCE = Source(
    name="LoCoMo",
    files=("locomo10.json", "data/locomo10.json"),
    download="https://github.com/snap-research/locomo (data/locomo10.json)",
)
CATEGORIES = {1: "multi_hop", 2: "temporal", 3: "open_domain", 4: "single_hop", 5: "adversarial"}
ADVERSARIAL = 5
SESSION = re.compile(r"session_(\d+)")
EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
DATE = re.compile(r"(\d{1,2}):(\d{2}) ?([ap])m on (\d{1,2}) ([a-z]+),? (\d{4})", re.IGNORECASE)


def load(path: Path, *, limit: int | None = None) -> tuple[Instance, ...]:
    """Reads every question of every conversation."""
    return first(_instances(SOURCE.find(path)), limit)


def date_of(text: str) -> datetime:
    """Parses a date in the dataset's format."""
    found = DATE.fullmatch(text.strip())
    if found is None or found[5].lower() not in MONTHS:
        raise ValueError(f"can't read the date {text!r}: expected '1:56 pm on 8 May, 2023'")
    hour = int(found[1]) % 12 + (12 if found[3].lower() == "p" else 0)
    return utc_time(int(found[6]), MONTHS[found[5].lower()], int(found[4]), hour, int(found[2]))


def _instances(file: Path) -> Iterator[Instance]:
    for row in read_rows(file):
        with locate_errors(file, row.place):
            sample = text_of(row.values, "sample_id")
            speakers, turns = _conversation(row.values["conversation"])
            questions = list_of(row.values, "qa")
        for number, question in enumerate(questions):
            with locate_errors(file, f"{row.place} ({sample}), question {number + 1}"):
                instance = _instance(
                    question, id_=f"{sample}-{number}", speakers=speakers, turns=turns
                )
            yield instance


def _conversation(values: Mapping[str, Any]) -> tuple[tuple[str, str], dict[str, BenchTurn]]:
    speakers = text_of(values, "speaker_a"), text_of(values, "speaker_b")
    # Some sessions have a date but no turns.
    numbers = sorted(int(found[1]) for key in values if (found := SESSION.fullmatch(key)))
    turns: dict[str, BenchTurn] = {}
    for number in numbers:
        said = list_of(values, f"session_{number}")
        if not said:
            continue
        at = date_of(text_of(values, f"session_{number}_date_time"))
        for place, turn in enumerate(said):
            id_ = text_of(turn, "dia_id")
            if id_ in turns:
                raise ValueError(f"two turns have the id {id_!r}")
            turns[id_] = BenchTurn(
                id=id_,
                text=_text(turn),
                kind="distractor",
                at=at + timedelta(seconds=place),
                speaker=text_of(turn, "speaker"),
                recorded=len(turns),
                session=f"session_{number}",
            )
    return speakers, turns


def _text(turn: Mapping[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['text']} [shares {caption}]".strip() if caption else text_of(turn, "text")


def _instance(
    values: Mapping[str, Any],
    *,
    id_: str,
    speakers: tuple[str, str],
    turns: Mapping[str, BenchTurn],
) -> Instance:
    category = values["category"]
    if category not in CATEGORIES:
        raise ValueError(f"category {category!r} is not one of {', '.join(map(str, CATEGORIES))}")
    adversarial = category == ADVERSARIAL
    question = text_of(values, "question")
    evidence = _evidence(values.get("evidence") or ())
    shown = set() if adversarial else set(evidence)
    about = [name for name in speakers if name.lower() in question.lower()]
    metadata: dict[str, Any] = {"category": category, "speakers": speakers, "evidence": evidence}
    if adversarial and values.get("adversarial_answer") is not None:
        metadata["adversarial_answer"] = str(values["adversarial_answer"])
    return Instance(
        id=id_,
        family=f"locomo_{CATEGORIES[category]}",
        question=question,
        turns=tuple(
            replace(turn, kind="new") if turn.id in shown else turn for turn in turns.values()
        ),
        answers=() if adversarial else (text_of(values, "answer"),),
        entity=about[0] if len(about) == 1 else " and ".join(speakers),
        metadata=FrozenDict(metadata),
    )


def _evidence(entries: Any) -> tuple[str, ...]:
    """Returns the turn ids named in the entries, normalised to the turns' spelling."""
    found = (match for entry in entries for match in EVIDENCE.finditer(str(entry)))
    return tuple(dict.fromkeys(f"D{int(match[1])}:{int(match[2])}" for match in found))
