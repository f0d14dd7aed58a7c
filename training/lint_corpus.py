"""Checks the training corpus: schema, counts, duplicates, leaked labels, balance, overlap of parts.

Errors make it exit with 1; warnings are printed and leave the exit status alone.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from training.corpus_text import near_duplicates, normal, stems
from training.kappa import data
from training.lint_report import Report, share
from training.lint_sets import check_contrasts, check_facts, check_notebooks, check_remarks

MINIMUMS = {"families": 150, "behaviours": 15_000, "explicit": 5_000, "lookalikes": 5_000}
STATE_AIM, BALANCE_AIM, LEAK_AIM = 40, 1.6, 0.03
KEYS: dict[str, type] = {
    "family": str,
    "attribute": str,
    "writer": str,
    "domain": str,
    "questions": list,
    "states": dict,
    "neutral": list,
    "explicit": list,
    "lookalikes": list,
}
OPTIONAL: dict[str, type] = {"says": dict, "not_theirs": list}
DOMAINS = frozenset({"people", "operations"})
KINDS = {
    "explicit": frozenset(
        "buried correction date implied name negation number place start statement terse".split()
    ),
    "lookalikes": frozenset(
        "accumulating hypothetical other_person other_slot past plan question reported restated "
        "smalltalk start temporary".split()
    ),
}
CUE = re.compile(
    r"\b(now|nowadays|no longer|not any ?more|any ?more|these days|since|instead|moved?|moving|"
    r"chang(?:ed?|es|ing)|switch(?:ed|es|ing)?|swapped|replaced|became|turned|started|stopped|"
    r"quit|gave up|dropped|raised|new|update[ds]?|correction|actually|from (?:today|tomorrow))\b"
)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a corpus file, and where it stands."""

    where: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Item:
    """One text of the corpus, the place it comes from and the part of the data it falls in."""

    text: str
    where: str
    part: str = ""


def read_rows(folder: Path) -> tuple[list[Row], Report]:
    """Reads every line of the corpus; a line that is no JSON object is an error."""
    rows, report = [], Report()
    for path in sorted(folder.glob("w*.jsonl")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            where = f"{path.name}:{number}"
            try:
                body = json.loads(line)
            except json.JSONDecodeError as error:
                report.errors.append(f"schema: {where}: not JSON: {error}")
                continue
            if isinstance(body, dict):
                rows.append(Row(where, body))
            else:
                report.errors.append(f"schema: {where}: not an object")
    return rows, report


def check_schema(rows: Iterable[Row]) -> Report:
    """Checks the keys, their types, the kinds, and that no text is empty."""
    report = Report()
    for row in rows:
        report.errors += [f"schema: {row.where}: {fault}" for fault in _faults(row.body)]
    return report


def _faults(body: Mapping[str, Any]) -> Iterator[str]:
    """Yields what is wrong with the shape of one family."""
    known = KEYS | OPTIONAL
    wrong = [k for k, kind in KEYS.items() if not isinstance(body.get(k), kind)]
    wrong += [k for k, kind in OPTIONAL.items() if not isinstance(body.get(k, kind()), kind)]
    yield from (f"{key!r} is missing or not a {known[key].__name__}" for key in wrong)
    yield from (f"unknown key {key!r}" for key in body.keys() - known.keys())
    if wrong:
        return
    if body["domain"] not in DOMAINS:
        yield f"unknown domain {body['domain']!r}"
    if len(body["states"]) < 2:
        yield "fewer than two states"
    texts = {k: [body[k]] for k in ("family", "attribute", "writer")}
    texts |= {"questions": body["questions"], "neutral": body["neutral"]}
    texts |= {f"state {label!r}": lines for label, lines in body["states"].items()}
    texts |= {f"says {label!r}": lines for label, lines in body.get("says", {}).items()}
    if "not_theirs" in body:
        texts["not_theirs"] = body["not_theirs"]
    if unknown := body.get("says", {}).keys() - body["states"].keys():
        yield f"says unknown states {sorted(unknown)}"
    for place, lines in texts.items():
        if not isinstance(lines, list) or not lines:
            yield f"{place} is empty or not a list"
        elif not all(isinstance(line, str) and line.strip() for line in lines):
            yield f"{place} has an empty text"
    for key, kinds in KINDS.items():
        for number, pair in enumerate(body[key]):
            if not isinstance(pair, dict) or pair.keys() != {"kind", "older", "newer", "question"}:
                yield f"{key}[{number}] needs kind, older, newer and question"
            elif not all(isinstance(value, str) for value in pair.values()):
                yield f"{key}[{number}] has a value that is no text"
            elif not pair["older"].strip() or not pair["newer"].strip():
                yield f"{key}[{number}] has an empty text"
            elif normal(pair["older"]) == normal(pair["newer"]):
                yield f"{key}[{number}] pairs a text with itself"
            elif pair["kind"] not in kinds:
                yield f"{key}[{number}] has the unknown kind {pair['kind']!r}"


def behaviours(rows: Iterable[Row]) -> list[Item]:
    """Returns every behaviour, placed by family and state."""
    return [
        Item(line, f"{row.body['family']} / {label}")
        for row in rows
        for label, lines in row.body["states"].items()
        for line in lines
    ]


def joined(rows: Iterable[Row]) -> dict[str, dict[str, int]]:
    """Returns the behaviours a state has, by family, over all writers of that family."""
    sizes: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        for label, lines in row.body["states"].items():
            sizes[row.body["family"]][label] += len(lines)
    return sizes


def check_counts(rows: Sequence[Row], minimums: Mapping[str, int] = MINIMUMS) -> Report:
    """Holds the size of the corpus against its minimums, and every state against its aim."""
    sizes = joined(rows)
    counts = {
        "families": len(sizes),
        "behaviours": sum(sum(s.values()) for s in sizes.values()),
        **{key: sum(len(row.body[key]) for row in rows) for key in KINDS},
    }
    states = [n for family in sizes.values() for n in family.values()]
    small = [
        f"{family} / {label}: {n}"
        for family, labels in sizes.items()
        for label, n in labels.items()
        if n < STATE_AIM
    ]
    report = Report(
        stats={
            "writers": len({row.body["writer"] for row in rows}),
            **counts,
            "neutral": sum(len(row.body["neutral"]) for row in rows),
            "said outright": sum(
                len(lines) for row in rows for lines in row.body.get("says", {}).values()
            ),
            "not theirs": sum(len(row.body.get("not_theirs", [])) for row in rows),
            "states": len(states),
            "behaviours per state": [min(states, default=0), max(states, default=0)],
            "states under the aim": len(small),
        }
    )
    report.errors += [
        f"counts: {counts[key]} {key}, at least {least} are needed"
        for key, least in minimums.items()
        if counts[key] < least
    ]
    if small:
        report.warnings.append(
            f"counts: {len(small)} of {len(states)} states have fewer than {STATE_AIM} behaviours"
        )
    return report


def check_duplicates(rows: Sequence[Row]) -> Report:
    """Finds behaviours, neutral lines and pairs that occur twice, and behaviours that nearly do."""
    report = Report()
    items = behaviours(rows)
    neutral = [Item(t, f"{r.body['family']} / neutral") for r in rows for t in r.body["neutral"]]
    first: dict[str, Item] = {}
    repeated = 0
    for item in (*items, *neutral):
        before = first.setdefault(normal(item.text), item)
        if before is not item:
            repeated += 1
            line = f"duplicate: {item.text!r} in {before.where} and {item.where}"
            (report.errors if before.where == item.where else report.warnings).append(line)
    pairs: dict[tuple[str, str], str] = {}
    repeated_pairs = 0
    for row in rows:
        for key in KINDS:
            for pair in row.body[key]:
                both = (normal(pair["older"]), normal(pair["newer"]))
                where = f"{row.body['family']} / {key}"
                if both in pairs:
                    repeated_pairs += 1
                    report.warnings.append(
                        f"duplicate: pair {pair['older']!r} -> {pair['newer']!r} "
                        f"in {pairs[both]} and {where}"
                    )
                pairs.setdefault(both, where)
    unique = [item for item in items if first[normal(item.text)] is item]
    near = near_duplicates([item.text for item in unique])
    report.warnings += [
        f"near-duplicate: {score:.2f} {unique[i].text!r} in {unique[i].where} "
        f"and {unique[j].text!r} in {unique[j].where}"
        for i, j, score in near
    ]
    report.stats |= {
        "exact duplicate behaviours and neutral lines": repeated,
        "exact duplicate pairs": repeated_pairs,
        "near-duplicate behaviours": len(near),
    }
    return report


def leaks(rows: Iterable[Row]) -> Iterator[tuple[str, str, str, set[str], bool]]:
    """Yields family, state, behaviour, the stems of the label in it, and whether they tell.

    Stems that every label of the family has ("flying", in an attitude to flying) tell nothing.
    """
    rows = list(rows)
    labels = {family: [stems(s) for s in states] for family, states in joined(rows).items()}
    for row in rows:
        family = row.body["family"]
        common = set.intersection(*labels[family])
        for state, lines in row.body["states"].items():
            own = stems(state)
            for line in lines:
                if hit := own & stems(line):
                    yield family, state, line, hit, bool(hit - common)


def check_leakage(rows: Sequence[Row]) -> Report:
    """Measures how many behaviours contain a word of their own state's label."""
    total = Counter(item.where.rpartition(" / ")[0] for item in behaviours(rows))
    found = list(leaks(rows))
    by_family = Counter(family for family, *_ in found)
    shares = {family: share(n, total[family]) for family, n in by_family.items()}
    overall = share(len(found), total.total())
    report = Report(
        stats={
            "label leakage": overall,
            "label leakage, stems that tell states apart": share(
                sum(tells for *_, tells in found), total.total()
            ),
            "families with most leakage": dict(
                sorted(shares.items(), key=lambda kv: (-kv[1], kv[0]))[:10]
            ),
        }
    )
    if overall > LEAK_AIM:
        report.warnings.append(
            f"leakage: {overall:.1%} of the behaviours have a word of their label, "
            f"the aim is {LEAK_AIM:.0%}"
        )
    return report


def check_balance(rows: Sequence[Row]) -> Report:
    """Measures what a model could exploit: sizes of states, kinds, cues, lengths, questions."""
    report = Report()
    uneven = {
        family: dict(states)
        for family, states in joined(rows).items()
        if max(states.values()) > BALANCE_AIM * min(states.values())
    }
    report.warnings += [
        f"balance: the states of {family!r} differ by more than {BALANCE_AIM}: {states}"
        for family, states in uneven.items()
    ]
    report.stats["families with uneven states"] = len(uneven)
    for key in KINDS:
        pairs = [pair for row in rows for pair in row.body[key]]
        report.stats[f"{key} pairs"] = {
            "kinds": dict(Counter(pair["kind"] for pair in pairs).most_common()),
            "newer line has an update cue": share(
                sum(bool(CUE.search(normal(pair["newer"]))) for pair in pairs), len(pairs)
            ),
            "older line is the longer": share(
                sum(len(pair["older"]) > len(pair["newer"]) for pair in pairs), len(pairs)
            ),
            "has a question": share(sum(bool(pair["question"]) for pair in pairs), len(pairs)),
        }
    return report


def parts(families: Sequence[data.Family]) -> list[Item]:
    """Returns every text with its part: those of seen families, and the families held out whole."""
    cuts = {part: data.seen(families, part) for part in ("train", "dev", "test")}
    cuts |= {f"{part} families": data.held_out(families, part) for part in ("dev", "test")}
    return [
        Item(text, f"{family.name} / {place}", part)
        for part, cut in cuts.items()
        for family in cut
        for place, texts in (
            *family.states.items(),
            *((f"says {state}", lines) for state, lines in family.says.items()),
            ("neutral", family.neutral),
            ("not theirs", family.not_theirs),
            ("pairs", [t for pair in family.pairs for t in (pair.older, pair.newer)]),
        )
        for text in texts
    ]


def check_parts(rows: Sequence[Row], families: Sequence[data.Family]) -> Report:
    """Finds texts that stand in two parts of the data; a family held out whole may share none."""
    report = Report()
    held = data.DEV_WRITERS | data.TEST_WRITERS
    writers: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        writers[row.body["family"]].add(row.body["writer"])
    report.errors += [
        f"parts: the family {family!r} has held-out and other writers: {sorted(names)}"
        for family, names in writers.items()
        if names & held and len(names) > 1
    ]
    places: dict[str, dict[str, Item]] = defaultdict(dict)
    for item in parts(families):
        places[normal(item.text)].setdefault(item.part, item)
    exact = [list(found.values()) for found in places.values() if len(found) > 1]
    for items in exact:
        line = f"parts: {items[0].text!r} is in " + " and ".join(
            f"{item.part} ({item.where})" for item in items
        )
        whole = any(item.part.endswith("families") for item in items)
        (report.errors if whole else report.warnings).append(line)
    unique = [item for found in places.values() for item in found.values()]
    near = [
        (unique[i], unique[j], score)
        for i, j, score in near_duplicates([item.text for item in unique])
        if unique[i].part != unique[j].part and normal(unique[i].text) != normal(unique[j].text)
    ]
    report.warnings += [
        f"parts: near {score:.2f}: {a.text!r} in {a.part} ({a.where}) "
        f"and {b.text!r} in {b.part} ({b.where})"
        for a, b, score in near
    ]
    report.stats |= {
        "texts per part": dict(Counter(item.part for item in unique)),
        "texts in two parts": len(exact),
        "near-duplicates across parts": len(near),
        "of these, with a family held out whole": sum(
            a.part.endswith("families") or b.part.endswith("families") for a, b, _ in near
        ),
    }
    return report


def lint(folder: Path = data.CORPUS, minimums: Mapping[str, int] = MINIMUMS) -> Report:
    """Runs every check; the others wait until the schema is right."""
    rows, report = read_rows(folder)
    report.add(check_schema(rows))
    if report.errors:
        return report
    for found in (
        check_counts(rows, minimums),
        check_duplicates(rows),
        check_leakage(rows),
        check_balance(rows),
        check_parts(rows, data.load_families(folder)),
        *(check_contrasts(folder / name) for name in data.CONTRASTS.values()),
        check_facts(folder / "facts.jsonl"),
        check_remarks(folder / "remarks.jsonl"),
        check_notebooks(folder / "notebooks.jsonl"),
    ):
        report.add(found)
    return report


def show(report: Report, *, most: int = 20) -> Iterator[str]:
    """Yields the report as lines, with at most so many warnings of a sort."""
    for key, value in report.stats.items():
        if isinstance(value, dict):
            yield f"{key}:"
            yield from (f"  {name}: {inner}" for name, inner in value.items())
        else:
            yield f"{key}: {value}"
    shown: Counter[str] = Counter()
    for line in report.warnings:
        sort = line.partition(":")[0]
        shown[sort] += 1
        if shown[sort] <= most:
            yield f"warning: {line}"
    yield from (
        f"warning: {sort}: {n - most} more, see --json" for sort, n in shown.items() if n > most
    )
    yield from (f"error: {line}" for line in report.errors)
    yield f"{len(report.errors)} errors, {len(report.warnings)} warnings"


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the report of the corpus and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument("--corpus", type=Path, default=data.CORPUS, help="folder of JSONL files")
    options = parser.parse_args(arguments)
    report = lint(options.corpus)
    if options.json:
        print(json.dumps(asdict(report), ensure_ascii=False, indent=1))
    else:
        print("\n".join(show(report)))
    return 1 if report.errors else 0


if __name__ == "__main__":
    sys.exit(main())
