"""Every command that errors, pages and help tell a person to type exists and has the named options."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from penstock.cli import build

HOME = Path(__file__).parents[3]
IN_TEXT = re.compile(r"`penstock ([^`]+)`")
IN_PAGES = re.compile(r"<code>penstock (.+?)</code>", re.S)
SHOWN = re.compile(r"\{\{.*?\}\}", re.S)
"""What a template puts in."""


def texts(tree: ast.AST) -> Iterator[str]:
    """All of a module's, with X for what is put into them."""
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts |= {id(one) for one in node.values}
            yield "".join(str(one.value) if isinstance(one, ast.Constant) else "X" for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value


def named() -> Iterator[tuple[str, str]]:
    """Return the place of each named command, and its words."""
    for folder in ("common", "services", "extras"):
        for path in sorted((HOME / folder).rglob("*.py")):
            for text in texts(ast.parse(path.read_text())):
                for line in IN_TEXT.findall(text):
                    yield path.name, line
        for path in sorted((HOME / folder).rglob("*.html")):
            for line in IN_PAGES.findall(SHOWN.sub("X", path.read_text())):
                yield path.name, line


def fault(root: Any, line: str) -> str | None:
    """Return the fault of a command, or None."""
    words = line.replace("\n", " ").split()
    options = {word.partition("=")[0] for word in words if word.startswith("--")}
    of_all = {opt for one in root.params for opt in one.opts}
    while words and words[0] in of_all:  # of all commands: with its value
        words = words[2:]
    command = root
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        name, *others = words.pop(0).split("|")
        for one in (name, *others):
            if one not in command.commands:
                return None if one.isupper() or one == "..." else f"there is no {one}"
        command = command.commands[name]
    known = {opt for one in command.params for opt in (*one.opts, *one.secondary_opts)} | of_all | {"--help"}
    return f"it has no {', '.join(sorted(unknown))}" if (unknown := options - known) else None


def test_every_command_that_is_named_is_one() -> None:
    root = typer.main.get_command(build())
    found = list(named())
    assert len(found) > 200
    wrong = [f"{where}: penstock {line}: {said}" for where, line in found if (said := fault(root, line))]
    assert not wrong, "\n".join(wrong)


def test_an_unknown_command_is_seen() -> None:
    root = typer.main.get_command(build())
    assert fault(root, "start shop.charge") == "there is no start"
    assert fault(root, "limit put shop.door 3") == "there is no put"
    assert fault(root, "run shop.charge --max 3") == "it has no --max"
    assert fault(root, "--server URL limit set shop.door 3 --scope shop") is None
