"""Shows an instance on which the paths disagree, turn by turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Literal

from gcmem.bench.data.instances import BenchTurn, Instance
from gcmem.bench.report.lift import GCMEM, PATHS, STANDARD

Status = Literal["kept", "shadowed", "not retrieved"]
SYMBOLS: Mapping[Status, str] = {"kept": "●", "shadowed": "✕", "not retrieved": "○"}
CLASSES: Mapping[Status, str] = {"kept": "kept", "shadowed": "shadowed", "not retrieved": "missed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What GC-Mem did with one turn; `witness` is the turn that shadows it."""

    turn: str
    status: Status
    witness: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """One instance, each path's answer, and the fate of its turns.

    A turn without a fate was not retrieved; `where` names the condition.
    """

    instance: Instance
    answers: Mapping[str, str] = field(hash=False)
    fates: tuple[Fate, ...] = ()
    where: str = ""


def differing(found: Sequence[Disagreement]) -> list[Disagreement]:
    """Returns the instances on which GC-Mem and standard RAG gave different answers."""
    return [
        item
        for item in found
        if {GCMEM, STANDARD} <= item.answers.keys()
        and item.answers[GCMEM] != item.answers[STANDARD]
    ]


def disagreement_html(item: Disagreement, *, prefix: str) -> str:
    """Returns the HTML below the question of one disagreement.

    `prefix` is prepended to the ids of its turns.
    """
    instance = item.instance
    right = {instance.answer, *instance.answers} - {None}
    fates = {fate.turn: fate for fate in item.fates}
    turns = sorted(instance.turns, key=_when)
    places = {turn.id: number for number, turn in enumerate(turns, 1)}
    where = " · ".join(part for part in (item.where, instance.id, instance.family) if part)
    expected = instance.answer or " / ".join(instance.answers) or "—"
    answers = "".join(_answer(path, given, right) for path, given in item.answers.items())
    options = f"<h4>Options</h4><p>{escape(' · '.join(instance.options))}</p>"
    return (
        f'<p class="soft">{escape(where)}</p>'
        + (options if instance.options else "")
        + f"<h4>Answers</h4><p>Right: <strong>{escape(expected)}</strong></p>"
        + f'<ul class="answers">{answers}</ul>'
        + '<h4>Turns, in order of time</h4><ol class="turns">'
        + "".join(_turn(turn, fates.get(turn.id), places=places, prefix=prefix) for turn in turns)
        + "</ol>"
    )


def _answer(path: str, given: str, right: set[str | None]) -> str:
    kind, sign = ("right", "✓ right") if given in right else ("wrong", "✗ wrong")
    return (
        f"<li>{escape(PATHS.get(path, path))}: <strong>{escape(given or '(no answer)')}</strong> "
        f'<span class="{kind}">{sign}</span></li>'
    )


def _turn(turn: BenchTurn, fate: Fate | None, *, places: Mapping[str, int], prefix: str) -> str:
    status: Status = fate.status if fate else "not retrieved"
    place = places[turn.id]
    witness = _witness(fate.witness, places, prefix) if fate and fate.witness else ""
    time = (
        f'<time datetime="{turn.at.isoformat()}">{turn.at:%Y-%m-%d %H:%M}</time>' if turn.at else ""
    )
    state = f", shows {turn.state}" if turn.state else ""
    about = f"{turn.speaker} · {turn.kind}{state}"
    return (
        f'<li id="{prefix}-turn-{place}" class="{CLASSES[status]}">'
        f'<span class="id">{escape(turn.id)}</span> <span class="state">'
        f'<span aria-hidden="true">{SYMBOLS[status]}</span> {status}{witness}</span> '
        f'<span class="soft">{time} {escape(about)}</span><p>{escape(turn.text)}</p></li>'
    )


def _witness(witness: str, places: Mapping[str, int], prefix: str) -> str:
    name = f'<span class="id">{escape(witness)}</span>'
    if witness not in places:
        return f" by {name}"
    return f' by <a href="#{prefix}-turn-{places[witness]}">{name}</a>'


def _when(turn: BenchTurn) -> tuple[bool, float, int]:
    """Sort key by time; turns without a time come last, in recorded order."""
    return (turn.at is None, turn.at.timestamp() if turn.at else 0.0, turn.recorded)
