"""Creates files and folders that only their owner may read: memories are private.

Existing files and folders keep their mode, and the process's umask does not change.
"""

from __future__ import annotations

import os
from pathlib import Path

FILE_MODE = 0o600
FOLDER_MODE = 0o700


def make_private_folder(path: Path) -> None:
    """Creates a folder and its missing parents."""
    if path.is_dir():
        return
    make_private_folder(path.parent)
    path.mkdir(mode=FOLDER_MODE, exist_ok=True)


def make_private_file(path: Path) -> bool:
    """Creates an empty file and returns True; returns False if it exists.

    An existing file is not opened: closing it would release this process's locks on it.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE))
    except FileExistsError:
        return False
    return True


def write_private(path: Path, text: str) -> None:
    """Writes a text file; overwrites an existing one."""
    make_private_file(path)
    path.write_text(text, "utf-8")
