from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gcmem.bench.data.build import DATASETS, build
from gcmem.bench.data.pool import Family, Line, families, load_families
from gcmem.errors import InvalidInputError


def family(name: str = "tea", *, states: int = 3, lines: int = 100, invariants: int = 12) -> Family:
    labels = ("green", "black", "mint")[:states]
    return Family(
        name=name,
        attribute="which tea",
        questions=("Which tea does the user drink?",),
        states={x: tuple(Line("user", f"{name} {x} {n}") for n in range(lines)) for x in labels},
        statements={},
        invariants=tuple(f"{name} fact {n}" for n in range(invariants)),
    )


def row(**change: Any) -> dict[str, Any]:
    line = {"role": "user", "text": "Steeped it for eight minutes."}
    body = {
        "family": "tea",
        "attribute": "which tea",
        "questions": ["Which tea?"],
        "states": {"green": [], "black": [line]},
    }
    return body | change


def pool_file(folder: Path, *rows: object) -> Path:
    path = folder / "pool.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_a_pool_of_ones_own_needs_no_statements(tmp_path: Path) -> None:
    (found,) = load_families(pool_file(tmp_path, row()))
    assert found.states["black"] == (Line("user", "Steeped it for eight minutes."),)
    assert (found.statements, found.invariants) == ({}, ())


def test_the_shipped_pool_can_be_read_like_ones_own() -> None:
    import gcmem.bench.data.pool as pool

    path = Path(pool.__file__).parent / "lines" / "families.jsonl"
    assert load_families(path) == families()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"questions": []}, "'questions' needs 1"),
        ({"states": ["green", "black"]}, "'states' must be an object"),
        ({"states": {"green": []}}, "two or more labels"),
        ({"states": {"green": [], "": []}}, "an empty label"),
        ({"states": {"green": ["a"], "black": []}}, "'green' 1: a line needs"),
        ({"states": {"green": [{"role": "x", "text": "a"}], "black": []}}, "user or assistant"),
        ({"states": {"green": [{"role": "user", "text": ""}], "black": []}}, "'text' must be"),
        ({"states": {"a": [{"role": "user", "text": "a"}] * 2, "b": []}}, "the same line twice"),
        ({"statements": []}, "'statements' must be an object"),
        ({"family": "tea"}, "appears twice"),
    ],
)
def test_a_mistake_in_a_pool_is_named(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = pool_file(tmp_path, row(), row(family="other") | change)
    with pytest.raises(InvalidInputError, match=said) as caught:
        load_families(path)
    assert "pool.jsonl, line 2" in str(caught.value)


@pytest.mark.parametrize("name", DATASETS)
def test_a_given_pool_is_drawn_from(name: str) -> None:
    instances = build(name, pool=[family()])
    assert {instance.family for instance in instances} == {"tea"}
    assert {instance.severity for instance in instances} == {3}
    assert all(t.text.startswith("tea ") for i in instances for t in i.turns if t.state)


@pytest.mark.parametrize("name", DATASETS)
def test_the_shipped_pool_is_what_is_drawn_from_without_one(name: str) -> None:
    assert build(name, pool=families()) == build(name)


@pytest.mark.parametrize("name", ["chat-medium", "chat-large", "mutation"])
def test_distractors_stand_in_for_invariants(name: str) -> None:
    instances = build(name, pool=[family(invariants=0)])
    assert not any(instance.of_kind("invariant") for instance in instances)
    rich = build(name, pool=[family()])
    assert [len(i.turns) for i in instances] == [len(i.turns) for i in rich]


@pytest.mark.parametrize(
    ("name", "pool", "said"),
    [
        ("chat-large", [], "no family to draw from"),
        ("chat-medium", [family("hosting")], "no family to draw from"),
        ("chat-large", [family(), family()], "the same name"),
        ("chat-medium", [family(lines=69)], "'tea', state 'green', has 69 of 70 lines; "),
        ("mutation", [family(lines=99)], "has 99 of 100 lines"),
        ("mutation", [family(str(n), lines=9) for n in range(3)], "; and 4 more"),
        ("chat-hard", [family(states=2)], "no family has three states"),
        ("chat-hard", [family(invariants=2)], "has 2 of 12 invariants"),
        ("chat-large", [family(states=1)], "fewer than two states"),
        ("chat-large", [replace(family(), questions=())], "has no question"),
    ],
)
def test_what_a_pool_lacks_is_said(name: str, pool: list[Family], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said) as caught:
        build(name, pool=pool)
    assert name in str(caught.value)


def test_other_people_need_lines_of_users() -> None:
    tea = family()
    lines = tuple(Line("assistant", f"{n}") for n in range(100))
    pool = [replace(tea, states=tea.states | {"mint": lines})]
    with pytest.raises(InvalidInputError, match="'mint', has 0 of 20 lines by the user"):
        build("chat-hard", pool=pool)
