"""Where the command line finds the memory: flags, then environment, then the config file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gcmem.cli.location import Location, locate
from gcmem.errors import InvalidInputError
from tests.unit.cli.test_commands import gcmem


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without settings."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("PATH", "STORE", "STM", "ENCODER", "CONFIG"):
        monkeypatch.delenv(f"GCMEM_{name}", raising=False)
    return tmp_path


def write_config(home: Path, text: str) -> Path:
    file = home / ".gcmem" / "config.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def test_without_settings_it_is_the_file_in_the_home(home: Path) -> None:
    where = locate()
    assert where == Location(store="~/.gcmem/memory.db", stm=None, source="default", config=None)
    assert where.path == home / ".gcmem" / "memory.db"


def test_flags_beat_the_environment_which_beats_the_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_config(home, 'path = "notes.db"\nstm = "redis://file"\n')
    assert locate() == Location(
        store=str(home / ".gcmem" / "notes.db"),
        stm="redis://file",
        source="config file",
        config=file,
    )
    monkeypatch.setenv("GCMEM_STORE", "postgresql://env/db")
    assert (locate().store, locate().stm) == ("postgresql://env/db", "redis://file")
    monkeypatch.setenv("GCMEM_STM", "redis://env")
    assert (locate().source, locate().stm) == ("environment", "redis://env")
    where = locate(path=Path("flag.db"), stm="redis://flag")
    assert (where.store, where.stm, where.source) == ("flag.db", "redis://flag", "flags")
    assert locate(stm="").stm is None


def test_the_config_file_may_lie_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCMEM_CONFIG", str(tmp_path / "other.toml"))
    with pytest.raises(InvalidInputError, match=r"can't read the config file .*other\.toml"):
        locate()
    (tmp_path / "other.toml").write_text('store = "qdrant://host"')
    assert locate().store == "qdrant://host"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("store = [", "is not TOML"),
        ('shop = "x"', "unknown: shop"),
        ("path = 3", "each to a string"),
        ('path = "a"\nstore = "b"', r"both given \(config file\)"),
    ],
)
def test_a_config_file_that_makes_no_sense_is_an_error(home: Path, text: str, message: str) -> None:
    write_config(home, text)
    with pytest.raises(InvalidInputError, match=message):
        locate()


def test_the_encoder_is_chosen_apart_from_the_store(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert locate().encoder == "local"
    write_config(home, 'encoder = "gguf:models/e.gguf?query_prefix=a/ b"')
    there = home / ".gcmem" / "models" / "e.gguf"
    assert locate(path=Path("flag.db")).encoder == f"gguf:{there}?query_prefix=a/ b"
    monkeypatch.setenv("GCMEM_ENCODER", "multilingual")
    assert locate().encoder == "multilingual"
    assert locate(encoder="local").encoder == "local"


def test_path_and_store_together_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"both given \(flags\)"):
        locate(path=tmp_path, store="sqlite:///x.db")


def test_commands_open_what_the_settings_name(home: Path) -> None:
    write_config(home, 'store = "sqlite:///~/.gcmem/notes.db"')
    gcmem("add", "I live in Lyon.", "--user", "ana")
    assert (home / ".gcmem" / "notes.db").exists()
    assert "I live in Lyon." in gcmem("search", "Where?", "--user", "ana")
    other = f"sqlite:///{home / 'other.db'}"
    assert "other.db" in gcmem("add", "I live in Porto.", "--store", other)
    assert "Porto" in gcmem("history", GCMEM_STORE=other)
    assert json.loads(gcmem("reindex", "--store", other, "--json"))["chunks"] == 1
    assert "gcmem add" in gcmem("history", "--store", f"sqlite:///{home / 'no.db'}", code=2)


def test_doctor_shows_where_everything_is_and_no_password(home: Path) -> None:
    file = write_config(home, 'stm = "redis://:s3cret@127.0.0.1:1?timeout_s=0.1"')
    done = subprocess.run(
        [sys.executable, "-m", "gcmem", "doctor", "--json", "--store", "mysql://ana:s3cret@db"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "s3cret" not in done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["config"] == str(file)
    assert report["store"] == {"url": "mysql://ana:***@db", "from": "flags"}
    assert report["stm"] == {
        "url": "redis://:***@127.0.0.1:1?timeout_s=0.1",
        "reachable": False,
    }
    assert len(report["problems"]) == 2


def test_a_wrong_url_is_one_line_without_the_password() -> None:
    shown = gcmem("search", "x", "--store", "mysql://ana:s3cret@db/x", code=2)
    assert "no store has the scheme" in shown
    assert "s3cret" not in shown
    assert "Traceback" not in shown
