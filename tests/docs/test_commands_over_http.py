"""docs/api.md lists the commands that work with `--server`, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.language.terms.ids import new_id
from tests.penstock.cli.commands import penstock
from tests.penstock.cli.test_hostile_arguments import commands, tree

PAGE = Path(__file__).parents[2] / "docs/api.md"
ID = str(new_id())
CLOSED = "127.0.0.1:9"
"""A port without a server. A command over HTTP fails there, and changes nothing."""
TEXTS = ("explain",)
"""A command that prints a text, and looks for no installation."""
SOURCE = "definitions_over_http.py"
ARGUMENTS = {
    ("apply",): (SOURCE,),
    ("cancel",): (ID,),
    ("complete",): (ID, "--result", "1"),
    ("dead-letters", "drop"): ("--all",),
    ("dead-letters", "replay"): ("--all",),
    ("replay",): (ID, "--against", SOURCE),
    ("reschedule",): (ID, "--in", "1h"),
    ("rerun",): (ID,),
    ("rules", "rerun"): ("--all",),
    ("signal",): (ID, "paid"),
}
"""Arguments that a command checks before it looks for the installation."""


def listed() -> set[tuple[str, ...]]:
    """Return the commands that the page lists: `limit list|set` names two."""
    [text] = re.findall(r"\n\n(`run`, [^.]*?) work over HTTP", PAGE.read_text())
    page_commands: set[tuple[str, ...]] = set()
    for words in re.findall(r"`([^`]+)`", text):
        group, _, below = words.partition(" ")
        page_commands |= {(group, name) for name in below.split("|")} if below else {(group,)}
    return page_commands


def arguments(command: tuple[str, ...]) -> list[str]:
    """Return arguments with which a command goes as far as the installation."""
    if command in ARGUMENTS:
        return list(ARGUMENTS[command])
    node = tree()
    for word in command:
        node = node.commands[word]
    words: list[str] = []
    for parameter in node.params:
        if parameter.required:
            value = "3" if parameter.name in ("amount", "priority", "value") else ID
            words += [value] if parameter.param_type_name == "argument" else [parameter.opts[0], "1h"]
    return words


async def test_page_lists_each_command_that_works_over_http(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / SOURCE).write_text('from penstock import Trigger\n\nplaced = Trigger("over_http.placed")\n')
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setenv("PENSTOCK_TOKEN", "pst_" + "x" * 20)
    monkeypatch.setenv("USER_PASSWORD", "a long password of a test")
    monkeypatch.setenv("SECRET_VALUE", "a value")
    over_http, unclear = set(), {}
    for command in commands():
        if command == TEXTS:
            continue
        result = await penstock("--server", f"http://{CLOSED}", *command, *arguments(command))
        if CLOSED in result.err:
            over_http.add(command)
        elif "only works on the database" not in result.err:
            unclear[command] = result.err
    assert not unclear
    assert over_http == listed()
