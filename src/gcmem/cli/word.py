"""gcmem pin, unpin, confirm, reject and undo: a person's word about chunks"""

from __future__ import annotations

from typing import Annotated

import typer

from gcmem.cli.options import AsJson, StmURL, StorePath, StoreURL, locate, open_existing
from gcmem.cli.output import console, print_json
from gcmem.memory import Memory
from gcmem.types import Verdict

ChunkId = Annotated[str, typer.Argument(help="The id of a chunk (see gcmem history --ids).")]
Older = Annotated[str, typer.Argument(help="The id of the older chunk.")]
Newer = Annotated[str, typer.Argument(help="The id of the newer chunk.")]
By = Annotated[str, typer.Option(help="Whose word this is.")]
Reason = Annotated[str, typer.Option(help="Why, in a few words.")]


def _open(path: StorePath, store: StoreURL, stm: StmURL) -> Memory:
    return open_existing(locate(path=path, store=store, stm=stm))


def pin(
    chunk_id: ChunkId,
    path: StorePath = None,
    store: StoreURL = None,
    stm: StmURL = None,
    by: By = "user",
) -> None:
    """Never leave a chunk out."""
    with _open(path, store, stm) as memory:
        memory.pin(chunk_id, by=by)
    console.print(f"Pinned {chunk_id}.", markup=False)


def unpin(
    chunk_id: ChunkId,
    path: StorePath = None,
    store: StoreURL = None,
    stm: StmURL = None,
    by: By = "user",
) -> None:
    """Take a pin back."""
    with _open(path, store, stm) as memory:
        memory.unpin(chunk_id, by=by)
    console.print(f"{chunk_id} is not pinned any more.", markup=False)


def confirm(
    older: Older,
    newer: Newer,
    path: StorePath = None,
    store: StoreURL = None,
    stm: StmURL = None,
    by: By = "user",
    reason: Reason = "",
    as_json: AsJson = False,
) -> None:
    """Say that a newer chunk ended an older one.

    A person's word outranks every model, also later ones.
    """
    with _open(path, store, stm) as memory:
        verdict = memory.confirm(older, newer, by=by, reason=reason)
    _say(verdict, f"{older} is outdated since {newer}.", as_json=as_json)


def reject(
    older: Older,
    newer: Newer,
    path: StorePath = None,
    store: StoreURL = None,
    stm: StmURL = None,
    by: By = "user",
    reason: Reason = "",
    as_json: AsJson = False,
) -> None:
    """Say that a newer chunk did not end an older one.

    A person's word outranks every model, also later ones.
    """
    with _open(path, store, stm) as memory:
        verdict = memory.reject(older, newer, by=by, reason=reason)
    _say(verdict, f"{newer} does not contradict {older}.", as_json=as_json)


def undo(
    older: Older,
    newer: Newer,
    path: StorePath = None,
    store: StoreURL = None,
    stm: StmURL = None,
    by: By = "user",
    as_json: AsJson = False,
) -> None:
    """Take back a confirm or reject.

    Models decide again about the two chunks then.
    """
    with _open(path, store, stm) as memory:
        verdict = memory.undo(older, newer, by=by)
    _say(verdict, f"Models decide about {older} and {newer} again.", as_json=as_json)


def _say(verdict: Verdict, told: str, *, as_json: bool) -> None:
    if as_json:
        print_json(verdict)
    else:
        console.print(told, markup=False)
