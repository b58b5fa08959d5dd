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
    watch,
    webhooks,
    why,
    workflow_control,
    workflows,
)
from penstock.cli.command_runner import SERVER, not_over_http
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
        watch,
        execution_control,
        workflow_control,
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


def _is_typed(ctx: typer.Context, option: str) -> bool:
    source = ctx.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


ON_THIS_MACHINE = ("dev", "demo", "executor", "worker", "api", "migrate", "doctor")
"""Commands that are about servers themselves: PENSTOCK_SERVER says nothing to them."""


@app.callback()
def _common(
    ctx: typer.Context,
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    server: Annotated[
        str | None,
        typer.Option(
            envvar="PENSTOCK_SERVER",
            help="Ask this API, such as https://penstock.example.org, with the token of PENSTOCK_TOKEN.",
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(envvar="PENSTOCK_PROFILE", help="Server and token of ~/.config/penstock/profiles.toml."),
    ] = None,
) -> None:
    """Penstock runs work when events happen and keeps its promises when machines die."""
    if ctx.invoked_subcommand not in ON_THIS_MACHINE:
        SERVER.set((server or None, profile or None))
    elif any(_is_typed(ctx, name) for name in ("server", "profile")):
        raise not_over_http()


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
