from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from gcmem.cli import app
from gcmem.errors import InvalidInputError, PublicAddressError, StoreCorruptError
from gcmem.serve.http.access import check_address, is_loopback
from gcmem.serve.keys import KeyStore
from gcmem.types import Scope
from tests.serve.conftest import bearer


def test_a_key_is_found_by_its_secret_until_it_is_revoked(keys: KeyStore) -> None:
    made, secret = keys.create("ana", scope=Scope(user_id="ana"), read_only=True, untrusted=True)
    assert keys.find(secret) == made
    assert keys.list() == (made,)
    revoked = keys.revoke("ana")
    assert revoked.revoked_at is not None
    assert keys.find(secret) is None


def test_secrets_are_not_stored_in_the_clear(keys: KeyStore) -> None:
    _, secret = keys.create("ana")
    random_part = secret.split("_", 2)[2]
    assert len(random_part) >= 43
    stored = b"".join(p.read_bytes() for p in keys.path.parent.glob(f"{keys.path.name}*"))
    assert b"ana" in stored
    assert random_part.encode() not in stored
    assert secret.encode() not in stored


@pytest.mark.skipif(os.name == "nt", reason="no such permissions there")
def test_nobody_else_may_read_the_file(keys: KeyStore) -> None:
    keys.create("ana")
    assert stat.S_IMODE(keys.path.stat().st_mode) == 0o600


def test_an_active_name_is_taken_and_a_revoked_one_is_free(keys: KeyStore) -> None:
    keys.create("ana")
    with pytest.raises(InvalidInputError, match="already"):
        keys.create("ana")
    keys.revoke("ana")
    keys.create("ana")
    assert len(keys.list()) == 2
    with pytest.raises(InvalidInputError, match="no active key"):
        keys.revoke("bob")


def test_a_file_that_holds_no_keys_says_so(tmp_path: Path) -> None:
    (tmp_path / "x.keys").write_text("not a database, whatever it is called" * 100)
    with pytest.raises(StoreCorruptError, match="not a file of keys"):
        KeyStore(tmp_path / "x.keys").list()


def test_a_revocation_by_another_process_acts_at_once(guarded: TestClient, keys: KeyStore) -> None:
    ana = bearer(keys, "ana")
    assert guarded.get("/v1/whoami", headers=ana).status_code == 200
    subprocess.run(
        [sys.executable, "-m", "gcmem", "keys", "revoke", "ana", "--keys", str(keys.path)],
        check=True,
        capture_output=True,
    )
    assert guarded.get("/v1/whoami", headers=ana).status_code == 401


def test_revoking_the_last_key_opens_nothing(guarded: TestClient, keys: KeyStore) -> None:
    assert guarded.get("/v1/whoami").status_code == 200  # no key was made yet
    keys.create("ana")
    assert guarded.get("/v1/whoami").status_code == 401
    keys.revoke("ana")
    assert guarded.get("/v1/whoami").status_code == 401
    keys.close()
    keys.path.unlink()
    assert guarded.get("/v1/whoami").status_code == 401


def test_whoami_names_the_key_and_its_scope(guarded: TestClient, keys: KeyStore) -> None:
    headers = bearer(keys, "bot", scope=Scope(user_id="ana", agent_id="bot"), untrusted=True)
    assert guarded.get("/v1/whoami", headers=headers).json() == {
        "name": "bot", "user_id": "ana", "agent_id": "bot", "run_id": None,
        "read_only": False, "untrusted": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.0.4", False),
        ("example.org", False),
        ("", False),
    ],
)
def test_a_public_address_needs_an_active_key(host: str, loopback: bool, keys: KeyStore) -> None:
    assert is_loopback(host) == loopback
    if loopback:
        check_address(host, keys)
        return
    with pytest.raises(PublicAddressError, match="gcmem keys create"):
        check_address(host, keys)
    keys.create("ana")
    check_address(host, keys)
    keys.revoke("ana")
    with pytest.raises(PublicAddressError):
        check_address(host, keys)


def test_serve_refuses_a_public_address_without_keys(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gcmem", "serve", "--path", str(tmp_path / "m.db"),
         "--host", "0.0.0.0", "--port", "1"],
        capture_output=True,
        text=True,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert "gcmem keys create NAME" in done.stderr


def test_the_command_line_makes_lists_and_revokes(tmp_path: Path) -> None:
    runner, file = CliRunner(), ["--path", str(tmp_path / "m.db")]
    made = json.loads(
        runner.invoke(app, ["keys", "create", "ana", "--user", "ana", "--json", *file]).stdout
    )
    assert made["secret"].startswith("gcm_")
    assert made["key"]["scope"]["user_id"] == "ana"
    assert KeyStore(tmp_path / "m.db.keys").find(made["secret"]) is not None
    shown = runner.invoke(app, ["keys", "list", *file]).stdout
    assert "user_id=ana" in shown
    assert made["secret"] not in shown
    assert runner.invoke(app, ["keys", "revoke", "ana", *file]).exit_code == 0
    (listed,) = json.loads(runner.invoke(app, ["keys", "list", "--json", *file]).stdout)
    assert listed["revoked_at"]
    plain = runner.invoke(app, ["keys", "create", "bob", *file]).stdout.splitlines()
    assert plain[0].startswith("gcm_")
