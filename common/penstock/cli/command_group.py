"""A group of commands that suggests its own command for an unknown word, such as `delete` for `rm`."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from inspect import cleandoc
from typing import TYPE_CHECKING

from typer.core import TyperGroup

if TYPE_CHECKING:
    import typer
    from typer._click import Command, Context

MODULE = "--module"
_DELETE = ("delete", "remove", "rm", "revoke", "drop")
_LIST = ("list", "executions")
_SHOW = ("show", "list")
_CREATE = ("create", "set", "save")
_CHANGE = ("update", "set", "save")
_ENABLE = ("enable", "on", "resume")
_DISABLE = ("disable", "off", "pause")
USUAL_WORDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("delete", "del", "remove", "rm", "unset", "drop", "destroy", "erase", "revoke"), _DELETE
    ),
    **dict.fromkeys(("list", "ls", "ps", "all", "index"), _LIST),
    **dict.fromkeys(("show", "get", "describe", "inspect", "info", "cat", "status"), _SHOW),
    **dict.fromkeys(("create", "add", "new", "make", "set", "put", "save", "register"), _CREATE),
    **dict.fromkeys(("update", "edit", "change", "modify", "patch"), _CHANGE),
    **dict.fromkeys(("enable", "activate", "unpause"), _ENABLE),
    **dict.fromkeys(("disable", "deactivate", "suspend"), _DISABLE),
    **dict.fromkeys(("start", "exec", "execute", "submit", "enqueue", "call", "launch"), ("run",)),
    **dict.fromkeys(("stop", "kill", "abort", "terminate"), ("cancel",)),
    **dict.fromkeys(("retry", "restart", "redo"), ("rerun", "replay")),
    **dict.fromkeys(("send", "emit"), ("publish",)),
    **dict.fromkeys(("deploy",), ("apply",)),
    **dict.fromkeys(("init",), ("new",)),
    **dict.fromkeys(("serve", "up"), ("dev",)),
    **dict.fromkeys(("drain",), ("cordon",)),
    **dict.fromkeys(("undrain",), ("uncordon",)),
}
"""The commands for the words that other command lines use. A group names the first one that it has."""


def usual_command(word: str, commands: Collection[str]) -> str | None:
    """Return the command for a usual word among these commands, or None."""
    return next((command for command in USUAL_WORDS.get(word.lower(), ()) if command in commands), None)


class CommandGroup(TyperGroup):
    """A group that names its own command for a usual word, such as `delete` for `rm`. The similar spelling counts only if
    there is no such command."""

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """Return the name, the command and its arguments. Ends with wrong usage if there is no such command."""
        if self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            usual = usual_command(args[0], self.list_commands(ctx))
            if usual is not None:
                ctx.fail(f"No such command {args[0]!r}. Did you mean {usual!r}?")
        name, command, words = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing and (line := _meant_source(command, words)):
            option = "takes sources without" if MODULE not in line else "takes sources with"
            ctx.fail(f"`{name}` {option} {MODULE}.\nDid you mean: {ctx.command_path} {name} {line}")
        return name, command, words


def _meant_source(command: Command, words: list[str]) -> str | None:
    """Return the probably meant words where the source of definitions was given in the form of another command: `apply` and
    `lint` take it as an argument, and `dev` and `worker` as the option --module. None if nothing suggests that."""
    options = {option for parameter in command.params for option in parameter.opts}
    arguments = {parameter.name for parameter in command.params if parameter.param_type_name == "argument"}
    if "source" in arguments and MODULE not in options and (MODULE in words or "-m" in words):
        return shlex.join(word for word in words if word not in (MODULE, "-m"))
    if MODULE in options and not arguments and words and not words[0].startswith("-"):
        return shlex.join([MODULE, *words])
    return None


def use_in(app: typer.Typer) -> None:
    """Let a command line and all its groups answer unknown words in this way."""
    app.info.cls = CommandGroup
    for group in app.registered_groups:
        group.cls = CommandGroup


def join_lines(app: typer.Typer) -> None:
    """Let the help texts of a command line fill the terminal: the lines of a paragraph become one. Typer keeps the line breaks
    of docstrings, which are those of the source."""
    for command in app.registered_commands:
        command.help = _joined(command.help or getattr(command.callback, "__doc__", None) or "")
    for group in app.registered_groups:
        if group.typer_instance is not None:
            join_lines(group.typer_instance)


def _joined(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in cleandoc(text).split("\n\n"))
