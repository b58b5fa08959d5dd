"""docs/reference/cli.md: every command, as `--help` has it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import typer

from penstock.cli import PARTS, app

HEAD = """# Commands

This page is written by `docs/written` from the command line itself. `penstock COMMAND --help` says the same. Nearly every command has the
option `--json`, which prints one JSON document on each line.

Exit codes: 0 success · 1 an explained error · 2 wrong usage · 3 the servers were not ready in time · 130 interrupted.

The TAB key can complete commands, options and names (actions, rules, schedules, workers, the newest executions, ...). To set this up, add
`eval "$(penstock completion bash)"` to ~/.bashrc, the same line with `zsh` to ~/.zshrc, or `penstock completion fish | source` to the
configuration of fish.
"""


def command_texts() -> str:
    """Return the help texts of our commands and groups, from which `penstock --help` lists them."""
    root: Any = typer.main.get_command(app)
    ours = {command for parts in PARTS.values() for commands in parts.values() for command in commands}
    texts: dict[str, dict[str, str]] = {"commands": {}, "groups": {}}
    for name, command in root.commands.items():
        if name in ours:
            texts["groups" if hasattr(command, "commands") else "commands"][name] = command.help
    return json.dumps(texts, indent=1, ensure_ascii=False) + "\n"


def page() -> str:
    root: Any = typer.main.get_command(app)
    parts: dict[str, str] = {}
    for name, command in root.commands.items():
        panel = str(command.rich_help_panel)
        parts[panel] = parts.get(panel, "") + "".join(described(f"penstock {name}", command))
    return HEAD + "".join(f"\n## {panel}\n{text}" for panel, text in parts.items())


def described(words: str, command: Any) -> Iterator[str]:
    if command.hidden:
        return
    yield f"\n### `{words}`\n\n{_plain(command.help)}\n"
    if hasattr(command, "commands"):
        for name, inside in command.commands.items():
            yield from described(f"{words} {name}", inside)
        return
    rows = [row for parameter in command.params if (row := _row(parameter))]
    if rows:
        yield "\n| | |\n|---|---|\n" + "".join(rows)


def _row(parameter: Any) -> str | None:
    if getattr(parameter, "hidden", False) or parameter.name in ("help", "json"):
        return None
    if parameter.param_type_name == "argument":
        name = f"`{(parameter.metavar or parameter.name).upper().strip('{}[]')}`"
    else:
        name = ", ".join(f"`{one}`" for one in (*parameter.opts, *parameter.secondary_opts))
    said = _plain(parameter.help)
    shown = parameter.default
    if (
        parameter.param_type_name == "option"
        and isinstance(shown, (int, float, str))
        and shown not in (False, "")
    ):
        said = f"{said} Default: {shown}." if shown is not True and _same_everywhere(parameter) else said
    return f"| {name} | {said} |\n"


def _same_everywhere(parameter: Any) -> bool:
    """Replace the name of the user that runs the command, since it differs on each machine."""
    return parameter.name not in ("by", "home")


def _plain(text: str | None) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join((text or "").split())).replace("<", "&lt;")
