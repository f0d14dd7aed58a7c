"""gcmem reindex"""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gcmem import memory
from gcmem.cli.options import DEFAULT_PATH, AsJson, StorePath, check_exists
from gcmem.cli.output import console, print_json
from gcmem.defaults import default_encoder
from gcmem.store import open_embedded


def reindex(path: StorePath = DEFAULT_PATH, as_json: AsJson = False) -> None:
    """Embed every chunk anew with the current encoder; can be stopped and started again."""
    check_exists(path)
    encoder = default_encoder()
    store = open_embedded(path, encoder=encoder, stm_size=0)
    before = store.log.encoder_id
    columns = (TextColumn("re-embedding"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    try:
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task("", total=None)
            count = memory.reindex(
                store,
                encoder,
                progress=lambda done, total: bar.update(task, completed=done, total=total),
            )
            bar.update(task, completed=count, total=count)
    finally:
        store.log.close()
    if as_json:
        print_json({"chunks": count, "from": before, "to": encoder.id})
    else:
        console.print(f"Embedded {count} chunks with {encoder.id} (before: {before}).")
