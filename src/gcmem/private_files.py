"""Makes files and folders that only their owner may read: memories are private.

What is there already keeps its mode, and the process's umask is left alone.
"""

from __future__ import annotations

import os
from pathlib import Path

FILE_MODE = 0o600
FOLDER_MODE = 0o700


def make_private_folder(path: Path) -> None:
    """Makes a folder, and those above it that are missing."""
    if path.is_dir():
        return
    make_private_folder(path.parent)
    path.mkdir(mode=FOLDER_MODE, exist_ok=True)


def make_private_file(path: Path) -> bool:
    """Makes an empty file and returns True; returns False if there is one already.

    A file that is there is not even opened: closing it would release this process's locks on it.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE))
    except FileExistsError:
        return False
    return True


def write_private(path: Path, text: str) -> None:
    """Writes a text file; one that is there is overwritten."""
    make_private_file(path)
    path.write_text(text, "utf-8")
