"""The command `penstock`: one file for each group of commands. Users see the error and the fix, never a traceback.

Not here: what a command does, which is `client`'s, `operate`'s or a service's.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import typer

    app: typer.Typer

# What `penstock --help` shows, in this order: the files of commands, and the commands and groups that each of them adds.
# The one that is asked for is imported, and no other: most of the time that a short command takes is imports.
PARTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "Run Penstock": {
        "demo": ("demo",),
        "new_project": ("new",),
        "import_project": ("import",),
        "services": ("dev", "executor", "worker", "api", "migrate"),
    },
    "Say what is to be done": {
        "definitions": ("apply", "actions", "triggers", "rules"),
        "client_types": ("types",),
        "lint_files": ("lint", "schema"),
        "trial": ("test",),
        "retire": ("retire",),
        "schedules": ("schedule",),
        "polls": ("polls",),
        "workflows": ("workflow",),
    },
    "Start work, and see what happens": {
        "events": ("publish", "events", "show"),
        "enforcements": ("enforcements",),
        "run": ("run",),
        "executions": ("executions", "history"),
        "logs": ("logs",),
        "watch": ("watch",),
        "execution_control": ("cancel", "rerun"),
        "workflow_control": ("pause", "resume", "skip", "set-result"),
        "durable": ("signal", "replay"),
        "why": ("why", "queues"),
        "inquiries": ("inquiries", "answer"),
    },
    "Look after it": {
        "limits": ("limit",),
        "routes": ("routes",),
        "operations": ("check", "repair", "workers"),
        "recoveries": ("recoveries",),
        "announce": ("announce",),
        "top": ("top",),
        "completion": ("completion",),
        "doctor": ("doctor",),
        "explain": ("explain",),
        "dead_letters": ("dead-letters",),
        "roles": ("roles",),
        "tokens": ("tokens",),
        "users": ("users",),
        "audit": ("audit",),
        "secrets": ("secrets",),
        "webhooks": ("webhooks",),
        "subscriptions": ("subscriptions",),
    },
}

COMPLETING = "_PENSTOCK_COMPLETE"
"""The environment variable by which a shell asks what may come next."""


def build(only: Iterable[str] | None = None) -> typer.Typer:
    """The command line with these files of commands, by default all of them."""
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

    from penstock.cli.global_options import common

    app.callback()(common)
    return app


def print_version() -> None:
    sys.stdout.write(f"penstock {version('penstock')}\n")


def _parts_of(words: Sequence[str]) -> list[str] | None:
    """The file of the command that is asked for; None where that takes all of them: for help, and for what there is not."""
    remaining = iter(words)
    command = next((word for word in remaining if not _is_option(word, remaining)), "")
    matching = [part for parts in PARTS.values() for part, commands in parts.items() if command in commands]
    return matching or None


def _words_before_the_last() -> list[str]:
    """Return the words of the command line as the shell's completion script reports them, without the word that is to be
    completed."""
    if (bash := os.environ.get("COMP_WORDS")) is not None:
        return bash.split()[1 : int(os.environ.get("COMP_CWORD", "1"))]
    line = os.environ.get("_TYPER_COMPLETE_ARGS", "")  # zsh and fish
    return line.split()[1 : None if line.endswith(" ") else -1]


def _is_option(word: str, following: Iterator[str]) -> bool:
    """Return whether a word is an option of all commands. The value after it is consumed, too."""
    if word in ("--server", "--profile"):
        next(following, None)
    return word.startswith("-")


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line, of this process by default. Always ends with SystemExit; exit codes: 0 done, 1 an error
    that is explained, 2 wrong usage, 3 a service's servers were not ready in time, 130 interrupted."""
    arguments = list(sys.argv[1:] if words is None else words)
    if sys.stderr is None:  # it was closed: the exit code alone tells what happened
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    typed = arguments
    try:
        if sys.stdout is None:  # it was closed: the next file that is opened would get what is printed
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115
            raise _unwritable("it is closed")
        if arguments == ["--version"]:
            print_version()
            _flush()
            sys.exit(0)
        if COMPLETING in os.environ:
            from typer._completion_classes import completion_init

            completion_init()
            typed = _words_before_the_last()
        try:
            build(_parts_of(typed))(arguments, prog_name="penstock")
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


def _output_refuses(error: OSError) -> bool:
    """Return whether it is standard output that failed so. A file that a command writes may be full, too."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO) or error.filename is not None:
        return False
    try:
        os.write(sys.stdout.fileno(), b"\n")
    except OSError:
        _discard_output()
        return True
    return False


def _flush() -> None:
    """Write what was printed. Raises ConfigurationError where standard output does not take it, as on a full disk."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _discard_output()
        raise _unwritable(error.strerror or str(error)) from None


def _discard_output() -> None:
    """Lead standard output to nowhere. Python would try to write what is left at its exit, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _unwritable(reason: str) -> Exception:
    from penstock.errors import ConfigurationError

    return ConfigurationError(
        f"standard output cannot be written: {reason}",
        hint="Print to a file or a pipe that takes it; `> /dev/null` prints to nowhere. What was asked for may be done.",
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
    """`app`: the whole command line."""
    if name != "app":
        raise AttributeError(f"module 'penstock.cli' has no attribute {name!r}")
    globals()["app"] = whole = build()
    return whole
