"""Nothing leaves the machine, and nothing but gcmem's own files is written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ALONE = ("unshare", "--map-root-user", "--net", "--mount")
"""A user, network and mount namespace of its own."""


def test_commands_and_server_write_only_their_store_and_look_up_no_name(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    report = tmp_path / "report.json"
    session = [sys.executable, "-m", "tests.processes.offline_session", str(report)]
    if _has_namespaces(tmp_path):
        session = [*ALONE, *session, "--isolated"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("GCMEM_", "ORT_"))}
    environment |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    done = subprocess.run(
        session, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    written = {str(f.relative_to(home)) for f in home.rglob("*") if f.is_file()}
    foreign = {name for name in written if not name.startswith(".gcmem/")}
    assert (foreign, json.loads(report.read_text())["lookups"]) == (set(), [])
    assert ".gcmem/memory.db" in written


def test_a_user_who_set_the_variable_is_obeyed(tmp_path: Path) -> None:
    script = (
        "import os; from gcmem.defaults import default_encoder; "
        "default_encoder().encode(['a']); print(os.environ.get('ORT_DISABLE_TELEMETRY'))"
    )
    for given, expected in ((None, "1"), ("0", "0"), ("1", "1")):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("ORT_")}
        # With telemetry on, onnxruntime writes into all of these.
        environment |= dict.fromkeys(("HOME", "XDG_CACHE_HOME", "TMPDIR"), str(tmp_path))
        if given is not None:
            environment["ORT_DISABLE_TELEMETRY"] = given
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True
        )
        assert done.stdout.strip() == expected, done.stderr


def _has_namespaces(folder: Path) -> bool:
    """Tells whether this machine lets a user make them; containers often don't."""
    if shutil.which("unshare") is None:
        return False
    probe = folder / "probe"
    probe.touch()
    # Binding a file is part of the test: not every container that has namespaces allows it.
    bind = ["mount", "--bind", str(probe), "/etc/resolv.conf"]
    return subprocess.run([*ALONE, *bind], capture_output=True).returncode == 0
