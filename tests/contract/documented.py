"""Finds the commands in the documentation, and says what each of them names."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer
import typer.main

from gcmem.cli import app

ROOT = Path(__file__).parents[2]
GENERATED = {"cli.md"}
PAGES = sorted(
    page
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"))
    if page.name not in GENERATED
)
BLOCK = re.compile(r"^```(?:sh|console|bash)\n(.*?)^```", re.S | re.M)
INLINE = re.compile(r"`(gcmem [a-z][^`]*)`")
# What a command reads: options by their name, arguments by their place.
READS: dict[str, tuple[str | int, ...]] = {
    "add": ("--file",),
    "import": (0,),
    "migrate": (0,),
    "qualify": ("--pairs", "--instances"),
    "bench report": (0,),
    "bench compare": (0, 1),
}
# What a command makes, beside the store at --path.
MAKES: dict[str, tuple[str | int, ...]] = {
    "export": (0,),
    "migrate": (1,),
    "bench run": ("--out",),
}


@dataclass(frozen=True, kw_only=True)
class Block:
    """The shell commands of one block of a page."""

    page: Path
    text: str

    def __str__(self) -> str:
        return f"{self.page.name}: {self.text.splitlines()[0]}"

    def lines(self) -> list[list[str]]:
        """Returns the words of each line; a line that goes on is one, and comments are left out."""
        joined = re.sub(r"\\\n\s*", " ", self.text)
        return [words for line in joined.splitlines() if (words := _words(line))]

    def commands(self) -> Iterator[list[str]]:
        """Yields the arguments of each call of gcmem, also of one in a container."""
        for words in self.lines():
            if words[0] == "gcmem":
                yield words[1:]
            elif words[:2] == ["docker", "compose"] and "run" in words and "gcmem" in words:
                yield words[words.index("gcmem") + 1 :]


@dataclass(kw_only=True)
class Call:
    """One call of gcmem, held against the real command line."""

    name: str
    options: dict[str, list[str]] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)

    def files(self, table: dict[str, tuple[str | int, ...]]) -> list[str]:
        """Returns the files that a table says this call reads or makes."""
        named: list[str] = []
        for place in table.get(self.name, ()):
            if isinstance(place, str):
                named += self.options.get(place, [])
            else:
                named += self.arguments[place : place + 1]
        return named


def blocks() -> list[Block]:
    """Returns every block of shell commands in the documentation."""
    return [
        Block(page=page, text=text)
        for page in PAGES
        for text in BLOCK.findall(page.read_text("utf-8"))
    ]


def inline_commands() -> list[tuple[Path, list[str]]]:
    """Returns the calls of gcmem that stand within a sentence, without their placeholders."""
    found = []
    for page in PAGES:
        for text in INLINE.findall(page.read_text("utf-8")):
            plain = re.sub(r"[\[\]|…]", " ", text)
            found.append((page, plain.split()[1:]))
    return found


def parse(arguments: list[str], *, complete: bool = True) -> Call:
    """Reads a call as the command line would; raises AssertionError for what does not exist.

    A call within a sentence need not be complete: its options may lack their values.
    """
    command: Any = typer.main.get_command(app)
    names: list[str] = []
    rest = list(arguments)
    while hasattr(command, "get_command") and rest and not rest[0].startswith("-"):
        names.append(rest.pop(0))
        command = command.get_command(typer.Context(command), names[-1])
        assert command is not None, f"no such command: gcmem {' '.join(names)}"
    call = Call(name=" ".join(names))
    known = {
        option: param
        for param in command.params
        if param.param_type_name == "option"
        for option in (*param.opts, *param.secondary_opts)
    }
    while rest:
        word = rest.pop(0)
        if word in ("&", "--help"):
            continue
        if not word.startswith("--"):
            call.arguments.append(word)
            continue
        option, _, value = word.partition("=")
        assert option in known, f"gcmem {call.name} has no option {option}"
        if known[option].is_flag:
            continue
        if not value and rest and not rest[0].startswith("--"):
            value = rest.pop(0)
        assert value or not complete, f"gcmem {call.name} {option} needs a value"
        call.options.setdefault(option, []).append(value)
    return call


def _words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="&;")
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:  # part of a text that spans lines
        return []
