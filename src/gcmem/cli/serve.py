"""gcmem serve"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gcmem.cli.location import Location
from gcmem.cli.options import (
    SETTINGS,
    BaseURL,
    Judging,
    OracleName,
    ReaderName,
    StmURL,
    StorePath,
    StoreURL,
    Unqualified,
    locate,
    open_store,
)  # fmt: skip
from gcmem.cli.oracles import (
    check_oracle,
    oracle_named,
    reader_named,
    warn_of_recorded_fitness,
)
from gcmem.errors import InvalidInputError, MissingExtraError
from gcmem.judge import LLMOracle
from gcmem.judge.fitness import load_fitness
from gcmem.memory import Memory
from gcmem.serve.http.limits import Limits
from gcmem.serve.keys import KeyStore

if TYPE_CHECKING:
    from gcmem.serve.http.metrics import Metrics

KeysFile = Annotated[
    Path | None,
    typer.Option("--keys", help="The file of API keys; default: beside the store, FILE.keys."),
]
LIMITS = Limits()


def serve(
    path: StorePath = None,
    store: StoreURL = None,
    stm: StmURL = None,
    oracle: OracleName = "local",
    reader: ReaderName = "local",
    base_url: BaseURL = None,
    unqualified: Unqualified = False,
    host: Annotated[
        str, typer.Option(help="The address; one that other machines can reach needs API keys.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port.")] = 8321,
    keys: KeysFile = None,
    rate: Annotated[
        float, typer.Option(min=0, help="Requests per second for each key; 0 for no limit.")
    ] = LIMITS.rate_per_s,
    burst: Annotated[
        int, typer.Option(min=1, help="Requests that a key may make at once.")
    ] = LIMITS.burst,
    max_body: Annotated[
        int, typer.Option(min=1, help="The largest body, in bytes.")
    ] = LIMITS.body_bytes,
    body_timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds that a body may take to arrive.")
    ] = LIMITS.body_timeout_s,
    threads: Annotated[
        int, typer.Option(min=1, help="Requests that run at once.")
    ] = LIMITS.threads,
    request_timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds that a request may wait and run.")
    ] = LIMITS.request_timeout_s,
    grace: Annotated[
        float, typer.Option(min=0, help="Seconds to finish accepted requests after SIGTERM.")
    ] = LIMITS.grace_s,
    header_timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds that the headers may take to arrive.")
    ] = LIMITS.header_timeout_s,
    keep_alive: Annotated[
        int, typer.Option(min=0, help="Seconds that a connection may stay open between requests.")
    ] = int(LIMITS.keep_alive_s),
    connections: Annotated[
        int, typer.Option(min=1, help="Connections that may be open at once.")
    ] = LIMITS.connections,
    log_contents: Annotated[
        bool, typer.Option("--log-contents", help="Write queries and memories to the logs.")
    ] = False,
) -> None:
    """Serve the memory over HTTP: a REST API and a dashboard.

    It prints the address to open, then logs as JSON, on stderr.
    """
    try:
        from gcmem.serve.http import metrics as counts
        from gcmem.serve.http.access import check_address
        from gcmem.serve.http.app import make_app
        from gcmem.serve.http.server import listen
    except ModuleNotFoundError as error:
        raise MissingExtraError("serve", package=error.name or "fastapi") from error
    where = locate(path=path, store=store, stm=stm)
    key_store = KeyStore(keys or keys_beside(where))
    check_address(host, key_store, named=keys is not None)
    limits = Limits(
        rate_per_s=rate,
        burst=burst,
        body_bytes=max_body,
        body_timeout_s=body_timeout,
        threads=threads,
        request_timeout_s=request_timeout,
        grace_s=grace,
        header_timeout_s=header_timeout,
        keep_alive_s=keep_alive,
        connections=connections,
    )
    metrics = counts.Metrics()
    judging = Judging(oracle=oracle, reader=reader, base_url=base_url, unqualified=unqualified)
    app = make_app(
        served_memory(where, judging, metrics),
        keys=key_store,
        limits=limits,
        metrics=metrics,
        resolver=oracle_named(oracle, base_url=base_url),
        store_name=where.shown,
        log_contents=log_contents,
    )
    listen(app, host=host, port=port, limits=limits)


def served_memory(where: Location, judging: Judging, metrics: Metrics) -> Memory:
    """Opens a memory that counts its scores and caches those of whole sets."""
    from gcmem.serve.http.metrics import count_scores
    from gcmem.serve.http.remembering import RememberingOracle

    check_oracle(judging.oracle)  # checked first, so that a mistake creates no store
    opened, encoder = open_store(where)
    store = count_scores(opened, metrics)
    reader = reader_named(judging.reader, base_url=judging.base_url, encoder=encoder)
    oracle = None
    recorded = load_fitness()
    if judging.oracle != "local":  # the shipped model judges ahead
        oracle = oracle_named(judging.oracle, base_url=judging.base_url, cache=store.scores)
        warn_of_recorded_fitness(oracle, recorded)
        if not isinstance(oracle, LLMOracle):  # pairs that it skipped must be judged the next time
            oracle = RememberingOracle(oracle)
    return Memory(
        store=store,
        encoder=encoder,
        oracle=oracle,
        reader=reader,
        settings=SETTINGS,
        qualification=recorded,
        require_qualified=not judging.unqualified,
    )


def keys_beside(where: Location) -> Path:
    """Returns the default file for the keys of a store."""
    if where.path is None:
        raise InvalidInputError(
            "the store is on a server: name the file of its keys with --keys FILE"
        )
    return where.path.with_name(where.path.name + ".keys")
