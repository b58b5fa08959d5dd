"""The command `penstock`: one file for each group of commands. Users see the error and the fix, never a traceback.

Not here: what a command does, which is `client`'s, `operate`'s or a service's.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer

from penstock.cli import (
    announce,
    dead_letters,
    definitions,
    demo,
    doctor,
    durable,
    events,
    execution_control,
    executions,
    inquiries,
    limits,
    logs,
    operations,
    polls,
    retire,
    routes,
    run,
    schedules,
    secrets,
    services,
    subscriptions,
    tokens,
    users,
    webhooks,
    why,
    workflow_control,
    workflows,
)
from penstock.cli.output import complain, out
from penstock.errors import ServersNotReady
from penstock.service.explain_errors import explained

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
# What `penstock --help` shows, in this order; each part adds its commands.
PARTS = {
    "Run Penstock": (demo, services),
    "Say what is to be done": (definitions, retire, schedules, polls, workflows),
    "Start work, and see what happens": (
        events,
        run,
        executions,
        logs,
        execution_control,
        workflow_control,
        durable,
        why,
        inquiries,
    ),
    "Look after it": (
        limits,
        routes,
        operations,
        announce,
        doctor,
        dead_letters,
        tokens,
        users,
        secrets,
        webhooks,
        subscriptions,
    ),
}
for panel, parts in PARTS.items():
    commands, groups = len(app.registered_commands), len(app.registered_groups)
    for part in parts:
        part.add_to(app)
    for command in app.registered_commands[commands:]:
        command.rich_help_panel = panel
    for group in app.registered_groups[groups:]:
        group.rich_help_panel = panel


def _print_version(asked: bool) -> None:
    if asked:
        out.print(f"penstock {version('penstock')}", highlight=False)
        raise typer.Exit


@app.callback()
def _common(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Penstock runs work when events happen and keeps its promises when machines die."""


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line, of this process by default. Always ends with SystemExit; exit codes: 0 done, 1 an error
    that is explained, 2 wrong usage, 3 a service's servers were not ready in time, 130 interrupted."""
    try:
        app(None if words is None else list(words))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The program that reads our output, such as `head`, has closed the pipe. Without this, Python would complain at
        # its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        if os.environ.get("PENSTOCK_LOG_LEVEL", "").lower() == "debug":
            traceback.print_exc()
        complain(explained(error))
        sys.exit(3 if isinstance(error, ServersNotReady) else 1)
