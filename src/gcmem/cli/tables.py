"""Tables of chunks: what is still true, what is outdated and why, the timeline."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from datetime import timedelta

from rich.table import Table
from rich.text import Text

from gcmem.cli.counting import counted, part, verb
from gcmem.cli.output import console
from gcmem.outdated import Witness
from gcmem.types import Candidate, Chunk, Claim, Origin, Resolution, SearchResult, Shadow

FOUND: Mapping[Origin, str] = {"mtm": "similar", "stm": "recent", "edge": "linked"}
"""How a chunk was found, as tables show it."""
LONGEST_NAME = 12
LONGEST_REASON = 120


def plain(text: str, *, style: str = "") -> Text:
    """Returns a text without control characters, which could control the terminal."""
    kept = (c for c in text if c in "\n\t" or unicodedata.category(c) != "Cc")
    return Text("".join(kept), style=style)


def time_of(chunk: Chunk) -> str:
    """Returns the event time for a table."""
    return chunk.at.strftime("%Y-%m-%d %H:%M") if chunk.at else "(undated)"


def timeline_table(
    chunks: Sequence[Chunk], witnesses: Mapping[str, Witness], *, ids: bool = False
) -> Table:
    """Returns a timeline; a line below an outdated chunk says what replaced it."""
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(max_width=LONGEST_NAME, overflow="ellipsis", no_wrap=True)
    table.add_column(overflow="fold")
    for chunk in chunks:
        witness = witnesses.get(chunk.id)
        lines = [_marked(chunk, witness)]
        if witness is not None:
            newer = witness.chunk
            reason = plain(newer.text)
            reason.truncate(LONGEST_REASON, overflow="ellipsis")
            said, style = (
                ("outdated since", "red")
                if witness.outcome == "outdated"
                else ("may be outdated: see", "yellow")
            )
            lines.append(Text(f"{said} {time_of(newer)}: ", style=style) + reason)
        if ids:
            lines.append(plain(chunk.id, style="dim"))
        table.add_row(time_of(chunk), plain(chunk.speaker), Text("\n").join(lines))
    return table


def _marked(chunk: Chunk, witness: Witness | None) -> Text:
    """Returns a chunk's text with the outdated sentences struck out."""
    text = plain(chunk.text)
    if witness is None or witness.outcome != "outdated":
        return text
    if not witness.ended:
        text.stylize("strike dim")
    for sentence in witness.ended:
        start = text.plain.find(plain(sentence).plain)
        if start >= 0:
            text.stylize("strike dim", start, start + len(plain(sentence).plain))
    return text


def claims_table(claims: Sequence[Claim]) -> Table:
    """Returns claims, one a line."""
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(max_width=LONGEST_NAME, overflow="ellipsis", no_wrap=True)
    table.add_column(overflow="fold")
    for claim in claims:
        table.add_row(time_of(claim.chunk), plain(claim.chunk.speaker), plain(claim.text))
    return table


def kept_table(kept: Sequence[Candidate], *, title: str, answered: str | None = None) -> Table:
    """Returns the kept chunks; `answered` is the id of the chunk with the answer."""
    table = Table(title=title, title_justify="left", title_style="bold green")
    if answered is not None:
        table.add_column("", no_wrap=True)
    table.add_column("relevance", justify="right")
    table.add_column("found", no_wrap=True)
    table.add_column("time (UTC)", no_wrap=True)
    table.add_column("text", overflow="fold")
    for item in kept:
        is_answer = item.chunk.id == answered
        mark = () if answered is None else (">" if is_answer else "",)
        table.add_row(
            *mark,
            f"{item.relevance:.2f}",
            FOUND[item.origin],
            time_of(item.chunk),
            plain(item.chunk.text),
            style="bold" if is_answer else None,
        )
    return table


def ranked_table(result: SearchResult) -> Table:
    """Returns the candidates as the mode ranks them, outdated ones with what contradicts them."""
    shown = part(len(result), len(result.candidates), "chunk")
    table = Table(title=f"Ranked: {shown}", title_justify="left", title_style="bold")
    table.add_column("relevance", justify="right")
    table.add_column("time (UTC)", no_wrap=True)
    table.add_column("text", overflow="fold")
    table.add_column("contradicted by", overflow="fold")
    for item in result:
        shadow = result.shadow_of(item.chunk.id)
        because = "" if shadow is None else shadow.witness.chunk.text
        text = plain(item.chunk.text, style="" if shadow is None else "strike")
        table.add_row(f"{item.relevance:.2f}", time_of(item.chunk), text, plain(because))
    return table


def outdated_table(shadows: Sequence[Shadow], *, most: int | None = None) -> Table:
    """Returns the chunks that were removed, each with the newer chunk that contradicts it."""
    shown = shadows[:most]
    title = f"Outdated: {part(len(shown), len(shadows), 'chunk')}"
    table = Table(title=title, title_justify="left", title_style="bold red")
    table.add_column("time (UTC)", no_wrap=True)
    table.add_column("no longer true", overflow="fold", style="strike")
    table.add_column("because", overflow="fold")
    table.add_column("score", justify="right")
    for shadow in shown:
        witness = shadow.witness.chunk
        table.add_row(
            time_of(shadow.candidate.chunk),
            plain(shadow.claim.text if shadow.claim else shadow.candidate.chunk.text),
            plain(f"{time_of(witness)}  {_said_by(shadow)}"),
            f"{shadow.conflict.score:.2f}",
        )
    return table


def _said_by(shadow: Shadow) -> str:
    claim = shadow.witness_claim
    text = shadow.witness.chunk.text if claim is None else claim.text
    reason = getattr(shadow.conflict, "reason", "")
    return f"{text} ({reason})" if reason else text


def print_doubts(result: SearchResult) -> None:
    """Prints which of the kept chunks may be outdated, and how many nobody has judged yet."""
    shown = {item.chunk.id for item in result.kept}
    for doubt in result.doubtful:
        if doubt.candidate.chunk.id in shown:
            console.print(
                Text("may be outdated: ", style="yellow")
                + plain(doubt.claim.text)
                + Text(f"  see {time_of(doubt.witness.chunk)}: ", style="dim")
                + plain(doubt.witness_claim.text)
            )
    if result.unjudged:
        waiting = verb(len(result.unjudged), "candidate has", "candidates have")
        console.print(f"{waiting} not been judged yet: gcmem judge", style="dim")


def print_undecided(found: SearchResult | Resolution) -> None:
    """Prints how many conflicts were left undecided, and why."""
    if found.undecided:
        pairs = counted(len(found.undecided), "conflicting pair")
        console.print(f"{pairs} could not be ordered in time; both chunks stay.")
    if found.skewed:
        worst = timedelta(seconds=max(skew.disagreement_s for skew in found.skewed))
        console.print(
            f"{len(found.skewed)} of them because their writers' clocks disagree, by {worst} or "
            "more: set the clocks of the machines that write.",
            style="yellow",
        )
    if found.outranked:
        newer = verb(len(found.outranked), "newer chunk contradicts", "newer chunks contradict")
        console.print(f"{newer} more trusted ones; both stay.")
