"""The command `penstock`, with a file for each group of commands. Users see the error and the fix, never a traceback.

Not here: the work of a command, which `client`, `operate` or a service does.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import traceback
from codecs import register_error
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from importlib.resources import files
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

from penstock.language.terms.visible_text import json_escapes

if TYPE_CHECKING:
    import typer

    app: typer.Typer

# Our commands, in the order of `penstock --help`: the files of commands, and the commands and groups that each file
# adds. Other packages add groups of their own (`added_commands.py`). Only the file of the requested command is
# imported, since imports take most of the time of a short command.
PARTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "Run Penstock": {
        "demo": ("demo",),
        "new_project": ("new",),
        "services": ("dev", "executor", "worker", "api", "gateway", "migrate"),
    },
    "Define and check work": {
        "definitions": ("apply", "actions", "triggers", "rules"),
        "client_types": ("types",),
        "lint_files": ("lint", "schema"),
        "trial": ("test",),
        "worker_conformance": ("worker-conformance",),
        "retire": ("retire",),
        "schedules": ("schedule",),
        "polls": ("polls",),
        "workflows": ("workflow",),
    },
    "Start, watch and control executions": {
        "events": ("publish", "events", "show"),
        "enforcements": ("enforcements",),
        "run": ("run",),
        "executions": ("executions", "history"),
        "saved_views": ("views",),
        "logs": ("logs",),
        "watch": ("watch",),
        "execution_control": ("cancel", "rerun", "set-priority", "reschedule", "raise-budget"),
        "workflow_control": ("pause", "resume", "skip", "set-result"),
        "durable": ("signal", "replay"),
        "why": ("why", "queues"),
        "inquiries": ("inquiries", "answer"),
        "outside_waits": ("complete",),
    },
    "Operate and administer": {
        "limits": ("limit",),
        "breakers": ("breaker",),
        "holds": ("hold", "release", "holds"),
        "routes": ("routes",),
        "operations": ("check", "repair", "workers"),
        "recoveries": ("recoveries",),
        "announce": ("announce",),
        "top": ("top",),
        "completion": ("completion",),
        "doctor": ("doctor",),
        "explain": ("explain",),
        "dead_letters": ("dead-letters",),
        "service_accounts": ("roles",),
        "tokens": ("tokens",),
        "users": ("users",),
        "audit": ("audit",),
        "secrets": ("secrets",),
        "encryption": ("encryption",),
        "webhooks": ("webhooks",),
        "subscriptions": ("subscriptions",),
    },
}

COMPLETING = "_PENSTOCK_COMPLETE"
"""The environment variable by which a shell requests completions."""


def build(only: Iterable[str] | None = None) -> typer.Typer:
    """Return the command line with the commands of these files. By default it has those of all files and packages. With
    no file at all it has those of other packages."""
    import typer

    app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False)
    for panel, parts in PARTS.items():
        commands, groups = len(app.registered_commands), len(app.registered_groups)
        for part in parts:
            if only is None or part in only:
                import_module(f"penstock.cli.{part}").add_to(app)
        for command in app.registered_commands[commands:]:
            command.rich_help_panel = panel
        for group in app.registered_groups[groups:]:
            group.rich_help_panel = panel
    if not only:
        _add_common(app)
        return app
    _add_options(app)
    return app


def listing() -> typer.Typer:
    """Return a command line with the names and help texts of all our commands, for help, completion and unknown commands.
    It imports none of them: their imports take most of the time of `penstock --help`."""
    import typer

    app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False)
    texts = json.loads(files("penstock.cli").joinpath("command_texts.json").read_text(encoding="utf-8"))
    for panel, parts in PARTS.items():
        for command in [command for commands in parts.values() for command in commands]:
            if command in texts["groups"]:
                group = typer.Typer(help=texts["groups"][command])
                app.add_typer(group, name=command, rich_help_panel=panel)
            else:
                app.command(command, help=texts["commands"][command], rich_help_panel=panel)(_unlisted)
    _add_common(app)
    return app


def _unlisted() -> None:
    raise LookupError("the command line that lists commands runs none of them")


def _add_common(app: typer.Typer) -> None:
    """Add the groups of other packages, and the options of the whole command line."""
    from penstock.cli import added_commands

    ours = {command for parts in PARTS.values() for commands in parts.values() for command in commands}
    added_commands.add_to(app, ours)
    _add_options(app)


def _add_options(app: typer.Typer) -> None:
    """Add the options of the whole command line, and the answers of its groups to unknown commands."""
    from penstock.cli import command_group
    from penstock.cli.global_options import common

    app.callback()(common)
    command_group.use_in(app)
    command_group.join_lines(app)


def print_version() -> None:
    sys.stdout.write(f"penstock {version('penstock')}\n")


def _parts_of(words: Sequence[str]) -> list[str] | None:
    """Return the file of the requested command, and no file for a command of another package. Return None without
    a known command: for help, or for an unknown command."""
    remaining = iter(words)
    command = next((word for word in remaining if not _is_option(word, remaining)), "")
    matching = [part for parts in PARTS.values() for part, commands in parts.items() if command in commands]
    if matching or not command:
        return matching or None
    from penstock.cli import added_commands

    return [] if command in added_commands.names() else None


def _words_before_the_last() -> list[str]:
    """Return the words of the command line, as the shell's completion script reports them, without the word to
    complete."""
    if (bash := os.environ.get("COMP_WORDS")) is not None:
        return bash.split()[1 : int(os.environ.get("COMP_CWORD", "1"))]
    line = os.environ.get("_TYPER_COMPLETE_ARGS", "")  # set by the completion scripts of zsh and fish
    return line.split()[1 : None if line.endswith(" ") else -1]


def _is_option(word: str, following: Iterator[str]) -> bool:
    """Return whether a word is an option of the whole command line. Also consume the value after it."""
    if word in ("--server", "--profile"):
        next(following, None)
    return word.startswith("-")


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line, by default that of this process. Always ends with SystemExit.

    Exit codes: 0 success, 1 an explained error, 2 wrong usage, 3 the servers of a service were not ready in time, 130
    interrupted.
    """
    arguments = list(sys.argv[1:] if words is None else words)
    if sys.stderr is None:  # the caller closed standard error, so only the exit code reports the outcome
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    typed = arguments
    try:
        # If the caller closed standard output, the next opened file would get its descriptor, and our output with it.
        if sys.stdout is None:
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115
            raise _unwritable("it is closed")
        _escape_what_has_no_encoding()
        if arguments == ["--version"]:
            print_version()
            _flush()
            sys.exit(0)
        if COMPLETING in os.environ:
            from typer._completion_classes import completion_init

            completion_init()
            typed = _words_before_the_last()
        try:
            parts = _parts_of(typed)
            (listing() if parts is None else build(parts))(arguments, prog_name="penstock")
        finally:
            _flush()
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The program that reads our output, such as `head`, has closed the pipe.
        _discard_output()
        sys.exit(0)
    except OSError as error:
        _explain(_unwritable(error.strerror or str(error)) if _output_refuses(error) else error)
    except Exception as error:
        _explain(error)


def _escape_what_has_no_encoding() -> None:
    """Write characters that the encoding of standard output does not have as JSON escapes. A locale with ASCII or Latin-1
    is common in cron and in pipes, and a command must not fail after it has done its work."""
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        register_error("penstock.json", json_escapes)
        sys.stdout.reconfigure(errors="penstock.json")


def _output_refuses(error: OSError) -> bool:
    """Return whether writing to standard output raised the error. The files that a command writes may be on a full
    disk too."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO) or error.filename is not None:
        return False
    try:
        os.write(sys.stdout.fileno(), b"\n")
    except OSError:
        _discard_output()
        return True
    return False


def _flush() -> None:
    """Flush standard output. Raises ConfigurationError if that fails, as on a full disk."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _discard_output()
        raise _unwritable(error.strerror or str(error)) from None


def _discard_output() -> None:
    """Redirect standard output to the null device. Otherwise Python would try to flush it at exit, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _unwritable(reason: str) -> Exception:
    from penstock.errors import ConfigurationError

    return ConfigurationError(
        f"standard output cannot be written: {reason}",
        hint="Redirect the output to a file or pipe that accepts it, or discard it with `> /dev/null`. The "
        "command itself may have succeeded.",
    )


def _explain(error: Exception) -> None:
    try:
        from penstock.cli.output import complain
    except ModuleNotFoundError:
        from penstock.extras import missing_extra

        cause = missing_extra(error) if isinstance(error, ModuleNotFoundError) else None
        sys.stderr.write(f"error: {cause or error}\n")
        sys.exit(2)
    from penstock.errors import MissingExtra, ServersNotReady
    from penstock.language.terms.visible_text import visible
    from penstock.service.explain_errors import explained

    if os.environ.get("PENSTOCK_LOG_LEVEL", "").lower() == "debug":
        sys.stderr.write(visible(traceback.format_exc()))
    explanation = explained(error)
    complain(explanation)
    match explanation:
        case ServersNotReady():
            sys.exit(3)
        case MissingExtra():
            sys.exit(2)
    sys.exit(1)


def __getattr__(name: str) -> Any:
    """Return the whole command line as `app`."""
    if name != "app":
        raise AttributeError(f"module 'penstock.cli' has no attribute {name!r}")
    globals()["app"] = whole = build()
    return whole
