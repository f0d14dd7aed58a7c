"""Trains the detector of claims: words and a sentence vector, one linear layer.

    python -m training.claims.train --memora DEV-SESSIONS.jsonl.xz

`labels.jsonl` has one labelled sentence a line. Sentences of the project's own texts are written
out; those of Memora are named by persona, period, session and turn, and read from its file. Two
readers labelled each; where they disagreed, it is not used. Every fifth conversation is held out.
Prints precision and recall on those, and writes src/gcmem/models/claims.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.stats import rankdata

from gcmem.defaults import default_encoder
from gcmem.indexed_text import dense_text
from gcmem.ingest.claims import ASSISTANT, SHIPPED, WORDS, word_features
from gcmem.sentences import is_question

LABELS = Path(__file__).parent / "labels.jsonl"
NAME, VERSION = "gcmem-claims", 1
WORD_PENALTY, VECTOR_PENALTY = 0.1, 0.15
THRESHOLD = -1.0
"""Below an even chance: a claim that is missed can't be judged, one too many can."""
ASSISTANT_THRESHOLD = 1.0
"""Above an even chance: an assistant mostly explains, and ends nobody's claims."""
WORTH_READING = 1.0
"""Below this score of the words alone, a sentence is not encoded: it loses 0.5 % of the claims."""

Floats = np.ndarray[Any, np.dtype[np.float64]]


def load(memora: Path) -> list[dict[str, Any]]:
    """Returns the labelled sentences on which both readers agree."""
    rows = [json.loads(line) for line in LABELS.read_text("utf-8").splitlines()]
    wanted = {row["turn"] for row in rows if row["source"] == "memora"}
    said: dict[str, str] = {}
    with lzma.open(memora, "rt") as file:
        for session in map(json.loads, file):
            place = f"{session['persona']}/{session['period']}/{session['session_id']}"
            for turn in session["conversation"]:
                if (name := f"{place}/{turn['turn']}") in wanted:
                    said[name] = turn["message"]
    for row in rows:
        if row["source"] == "memora":
            row["text"] = said[row["turn"]][slice(*row["span"])]
    return [row for row in rows if row["agreed"] and not is_question(row["text"])]


def is_held_out(row: dict[str, Any]) -> bool:
    """Returns whether a sentence's conversation is for measuring alone."""
    return int(hashlib.md5(row["conversation"].encode()).hexdigest(), 16) % 5 == 0


def features(rows: Sequence[dict[str, Any]]) -> sparse.csr_matrix:
    """Returns one row per sentence: its words, its vector, and 1 for the bias."""
    texts = [dense_text(row["text"], speaker=row["speaker"]) for row in rows]
    vectors = default_encoder().encode(texts)
    words = sparse.lil_matrix((len(rows), WORDS))
    for number, row in enumerate(rows):
        found = word_features(row["text"], is_assistant=row["speaker"] == ASSISTANT)
        words[number, found] = 1 / np.sqrt(len(found))
    return sparse.hstack([words, vectors, np.ones((len(rows), 1))]).tocsr()


def fit(known: sparse.csr_matrix, labels: Floats) -> Floats:
    """Returns the weights of a logistic regression."""
    size = known.shape[1]
    penalty = np.full(size, WORD_PENALTY)
    penalty[WORDS:] = VECTOR_PENALTY
    penalty[-1] = 0.0

    def loss(weights: Floats) -> tuple[float, Floats]:
        chance = 1 / (1 + np.exp(-(known @ weights)))
        told = np.where(labels == 1, chance, 1 - chance)
        total = -np.log(told + 1e-12).sum() + (penalty * weights**2).sum() / 2
        return float(total), known.T @ (chance - labels) + penalty * weights

    found = minimize(loss, np.zeros(size), jac=True, method="L-BFGS-B", options={"maxiter": 1000})
    return np.asarray(found.x)


def report(name: str, scores: Floats, labels: Floats) -> None:
    """Prints how well claims are told from the rest; scores count from the threshold."""
    found, claims = scores >= 0, labels == 1
    ranks = rankdata(scores)
    many = int(claims.sum())
    area = (ranks[claims].sum() - many * (many + 1) / 2) / max(1, many * (len(ranks) - many))
    precision = claims[found].mean() if found.any() else float("nan")
    recall = found[claims].mean() if many else float("nan")
    print(
        f"{name}: {len(labels)} sentences, {many} claims; AUC {area:.3f}, "
        f"precision {precision:.1%}, recall {recall:.1%}"
    )


def main() -> None:
    """Reads the arguments, trains, measures and writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--memora", type=Path, required=True)
    args = parser.parse_args()
    rows = load(args.memora)
    labels = np.array([row["claim"] for row in rows], dtype=np.float64)
    known = features(rows)
    held = np.array([is_held_out(row) for row in rows])
    weights = fit(known[~held], labels[~held])
    scores = known @ weights
    by_assistant = np.array([row["speaker"] == ASSISTANT for row in rows])
    scores = scores - np.where(by_assistant, ASSISTANT_THRESHOLD, THRESHOLD)
    for name, part in (
        ("held out", held),
        *(
            (f"held out, {source}", held & np.array([row["source"] == source for row in rows]))
            for source in sorted({row["source"] for row in rows})
        ),
        ("held out, assistants", held & by_assistant),
    ):
        if part.any():
            report(name, scores[part], labels[part])
    weights = fit(known, labels)  # what ships has seen every sentence
    SHIPPED.mkdir(exist_ok=True)
    np.save(SHIPPED / "words.npy", weights[:WORDS].astype(np.float16))
    np.save(SHIPPED / "vector.npy", weights[WORDS:-1].astype(np.float32))
    settings = {
        "name": NAME,
        "version": VERSION,
        "encoder": default_encoder().id,
        "bias": round(float(weights[-1]), 4),
        "threshold": THRESHOLD,
        "assistant_threshold": ASSISTANT_THRESHOLD,
        "worth_reading": WORTH_READING,
    }
    (SHIPPED / "config.json").write_text(json.dumps(settings, indent=2) + "\n")


if __name__ == "__main__":
    main()
