"""The options that several commands share, and how they open a memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from gcmem.cli.encoders import encoder_named
from gcmem.cli.location import Location, locate
from gcmem.cli.oracles import (
    check_oracle,
    oracle_named,
    reader_named,
    warn_of_recorded_fitness,
)
from gcmem.defaults import open_fitting
from gcmem.errors import InvalidInputError
from gcmem.judge.fitness import load_fitness
from gcmem.memory import Memory
from gcmem.protocols import Encoder, Store
from gcmem.settings import Settings
from gcmem.store import urls
from gcmem.store.sqlite.file import IN_MEMORY
from gcmem.times import parse_time

SETTINGS = Settings(respect_trust=True, max_metadata_bytes=16_384)
"""Settings of the command line and the servers: untrusted chunks can't replace trusted ones."""
ONE_COMMAND = replace(SETTINGS, judge="manual", judge_budget_ms=3000)
"""Settings of a command that ends soon: it judges only what its search needs, and takes the time
that loading the model needs."""

StorePath = Annotated[
    Path | None, typer.Option("--path", help="The store's file; else $GCMEM_PATH.")
]
StoreURL = Annotated[
    str | None,
    typer.Option(
        "--store",
        help="The store's URL: sqlite:/// or postgresql://, perhaps with ?index=qdrant://…; "
        "else $GCMEM_STORE.",
        metavar="URL",
    ),
]
StmURL = Annotated[
    str | None,
    typer.Option(
        "--stm", help="Where recent chunks are kept: redis://; else $GCMEM_STM.", metavar="URL"
    ),
]
UserId = Annotated[str | None, typer.Option("--user", help="Whose memory (user_id).")]
AgentId = Annotated[str | None, typer.Option("--agent", help="Which agent's memory (agent_id).")]
RunId = Annotated[str | None, typer.Option("--run", help="Which run's memory (run_id).")]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", help="What was true then: 2026-03-01T09:00:00Z.", metavar="TIME"),
]
KnownAt = Annotated[
    str | None,
    typer.Option("--known-at", help="What the memory had recorded by then.", metavar="TIME"),
]
Tz = Annotated[
    str | None,
    typer.Option("--tz", help="The timezone of times without one: Europe/Rome.", metavar="ZONE"),
]
Filters = Annotated[
    list[str] | None,
    typer.Option("--filter", help="Metadata that must match; repeatable.", metavar="KEY=VALUE"),
]
Option = Annotated[
    list[str] | None,
    typer.Option("--option", help="A possible answer; repeatable.", metavar="TEXT"),
]
OracleName = Annotated[
    str,
    typer.Option(
        "--oracle",
        help="The conflict model: local, nli:FOLDER, llm:MODEL or llm-pairwise:MODEL.",
    ),
]
BaseURL = Annotated[
    str | None,
    typer.Option(
        "--base-url", envvar="OPENAI_BASE_URL", help="The endpoint of the language model."
    ),
]
EncoderName = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        help="The encoder: local, multilingual, onnx:FOLDER or gguf:FILE; else $GCMEM_ENCODER.",
        metavar="NAME",
    ),
]
ReaderName = Annotated[str, typer.Option("--reader", help="What answers: local, or llm:MODEL.")]
Unqualified = Annotated[
    bool,
    typer.Option(
        "--unqualified",
        help="Let the conflict model remove chunks even if `gcmem qualify` has not found it fit.",
    ),
]
K = Annotated[int, typer.Option("-k", help="The most chunks to return.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

__all__ = [
    "SETTINGS",
    "AgentId",
    "AsJson",
    "AsOf",
    "BaseURL",
    "EncoderName",
    "Filters",
    "Judging",
    "K",
    "KnownAt",
    "Option",
    "OracleName",
    "ReaderName",
    "RunId",
    "StmURL",
    "StorePath",
    "StoreURL",
    "Tz",
    "Unqualified",
    "UserId",
    "check_exists",
    "locate",
    "open_existing",
    "open_memory",
    "open_store",
    "pairs",
    "timezone",
    "when",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """Which oracle and reader a command uses, as its options name them."""

    oracle: str = "local"
    reader: str = "local"
    base_url: str | None = None
    unqualified: bool = False
    in_background: bool = False
    """Whether the command runs on, so that it can judge in the background."""


LOCAL = Judging()


def open_store(where: Location) -> tuple[Store, Encoder]:
    """Opens the store, or creates it; returns its encoder too."""
    where.check_folder()
    named = None if where.encoder == "local" else encoder_named(where.encoder)
    return open_fitting(
        lambda encoder: urls.open_store(
            where.store, encoder=encoder, stm_size=SETTINGS.stm_size, stm=where.stm
        ),
        named,
    )


def open_memory(where: Location, judging: Judging = LOCAL) -> Memory:
    """Opens the memory, or creates it."""
    check_oracle(judging.oracle)  # checked first, so that a mistake creates no store
    recorded = load_fitness()
    store, encoder = open_store(where)
    try:
        reader = reader_named(judging.reader, base_url=judging.base_url, encoder=encoder)
        oracle = None
        if judging.oracle != "local":  # the shipped model judges ahead
            oracle = oracle_named(judging.oracle, base_url=judging.base_url, cache=store.scores)
        if oracle is not None and not judging.unqualified:
            warn_of_recorded_fitness(oracle, recorded)
        return Memory(
            store=store,
            encoder=encoder,
            oracle=oracle,
            reader=reader,
            settings=SETTINGS if judging.in_background else ONE_COMMAND,
            qualification=recorded,
            require_qualified=not judging.unqualified,
        )
    except BaseException:
        store.close()
        raise


def open_existing(where: Location, judging: Judging = LOCAL) -> Memory:
    """Opens the memory; raises an error if there is no store at the path."""
    check_exists(where)
    return open_memory(where, judging)


def check_exists(where: Location) -> None:
    """Raises an error that says how to create a store if the path has none."""
    path = where.path
    if path is not None and str(path) != IN_MEMORY and not path.exists():
        raise InvalidInputError(
            f"there is no store at {path} yet; make one: gcmem add{where.flag} 'a fact'"
        )


def when(text: str | None, *, tz: str | None = None) -> datetime | None:
    """Reads a time option; `tz` is the timezone that --tz names."""
    return None if text is None else parse_time(text, tz=timezone(tz))


def timezone(name: str | None) -> ZoneInfo | None:
    """Reads a timezone option."""
    try:
        return None if name is None else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInputError(f"--tz {name}: no such timezone; write for example UTC") from None


def pairs(items: list[str] | None) -> dict[str, Any]:
    """Reads KEY=VALUE options; a value that is JSON, such as true or 3, is parsed."""
    import json

    found: dict[str, Any] = {}
    for item in items or ():
        key, separator, value = item.partition("=")
        if not separator or not key:
            raise InvalidInputError(f"{item!r}: write KEY=VALUE")
        try:
            found[key] = json.loads(value)
        except (json.JSONDecodeError, RecursionError):
            found[key] = value
    return found
