"""Collects what the encoder learns from: questions, chat turns, and which turn answers which.

    python -m training.encoder.texts --memora DEV-SESSIONS.jsonl.xz --nli PAIRS.jsonl.xz --out DIR

Writes DIR/texts.jsonl ({"text", "kind"}) and DIR/pairs.jsonl ({"question", "documents"}, as line
numbers of the texts). Turns are written as the store embeds them, with the speaker. Two of
Memora's five development personas, and every fifth written conversation, are left out, so that
something is left to measure on.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
from pathlib import Path
from typing import Any

from training.chats.check import CHATS
from training.kappa.data import load_facts, load_families, load_nli, rows_of, seen

from gcmem.indexed_text import dense_text

QUESTIONS = Path(__file__).parent / "questions"
PERSONAS = frozenset({"academic_researcher", "content_writer", "marketing_manager"})
SPEAKERS = {"user_agent": "user", "ai_agent": "assistant"}
LEAST_WORDS = 4


def is_held_out(chat_id: str) -> bool:
    """Returns whether a written conversation is for measuring alone: every fifth of a writer."""
    return int(chat_id.rsplit("-", 1)[1]) % 5 == 0


class Texts:
    """Texts without repeats, numbered in the order they came."""

    def __init__(self) -> None:
        self.lines: list[dict[str, str]] = []
        self._numbers: dict[tuple[str, str], int] = {}

    def add(self, text: str, kind: str) -> int:
        """Returns the number of a text, which is new or known."""
        number = self._numbers.setdefault((text, kind), len(self.lines))
        if number == len(self.lines):
            self.lines.append({"text": text, "kind": kind})
        return number


def add_memora(texts: Texts, pairs: list[dict[str, Any]], path: Path, *, limit: int) -> None:
    """Adds turns of the training personas, and the questions written about some of them."""
    turns: dict[str, str] = {}
    with lzma.open(path, "rt") as file:
        for session in map(json.loads, file):
            if session["persona"] not in PERSONAS:
                continue
            for turn in session["conversation"]:
                place = (session["persona"], session["period"], session["session_id"], turn["turn"])
                turns["/".join(map(str, place))] = dense_text(
                    turn["message"], speaker=SPEAKERS[turn["speaker"]]
                )
    for file_ in sorted(QUESTIONS.glob("memora-*.jsonl")):
        for row in rows_of(file_):
            document = texts.add(turns[row["id"]], "document")
            pairs.append(
                {"question": texts.add(row["question"], "question"), "documents": [document]}
            )
    others = sorted({text for text in turns.values() if len(text.split()) > LEAST_WORDS})
    for text in random.Random(0).sample(others, min(limit, len(others))):
        texts.add(text, "document")


def add_chats(texts: Texts, pairs: list[dict[str, Any]]) -> None:
    """Adds the written conversations; outdated turns answer a question as well as current ones."""
    for file in sorted(CHATS.glob("*.jsonl")):
        for chat in rows_of(file):
            if is_held_out(chat["id"]):
                continue
            numbers = [
                texts.add(dense_text(turn["text"], speaker=turn["speaker"]), "document")
                for turn in chat["turns"]
            ]
            for asked in chat["questions"]:
                places = dict.fromkeys((*asked["evidence"], *asked["stale"]))
                pairs.append(
                    {
                        "question": texts.add(asked["question"], "question"),
                        "documents": [numbers[place] for place in places],
                    }
                )


def add_corpus(texts: Texts, pairs: list[dict[str, Any]], *, limit: int) -> None:
    """Adds sentences of the training corpus: behaviours and facts with their questions."""
    rng = random.Random(0)
    found: list[tuple[str, list[str]]] = []
    for family in seen(load_families(), "train"):
        sentences = [s for state in family.states.values() for s in state]
        if sentences:
            found += [(q, rng.sample(sentences, min(6, len(sentences)))) for q in family.questions]
    facts = [fact for relation in load_facts("train") for fact in relation]
    found += [(fact.question, [fact.first, fact.second]) for fact in facts]
    for question, sentences in rng.sample(found, min(limit, len(found))):
        documents = [texts.add(dense_text(s, speaker="user"), "document") for s in sentences]
        pairs.append({"question": texts.add(question, "question"), "documents": documents})


def main() -> None:
    """Collects and writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--memora", type=Path, required=True)
    parser.add_argument("--nli", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    texts, pairs = Texts(), list[dict[str, Any]]()
    add_chats(texts, pairs)
    add_memora(texts, pairs, args.memora, limit=18_000)
    add_corpus(texts, pairs, limit=3_000)
    for pair in load_nli(args.nli, limit=6_000, seed=0):
        texts.add(pair.older, "document")
    args.out.mkdir(parents=True, exist_ok=True)
    for name, rows in (("texts", texts.lines), ("pairs", pairs)):
        lines = (json.dumps(row, ensure_ascii=False) for row in rows)
        (args.out / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    print(len(texts.lines), "texts,", len(pairs), "questions")


if __name__ == "__main__":
    main()
