"""The options of the whole command line, which come before every command."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli import print_version

ON_THIS_MACHINE = (
    "dev", "demo", "new", "import", "lint", "schema", "test", "executor", "worker", "api", "gateway", "migrate", "doctor",
    "roles", "completion", "worker-conformance",
)  # fmt: skip
"""Commands about servers themselves, or without any server. They ignore PENSTOCK_SERVER."""


def _version(requested: bool) -> None:
    if requested:
        print_version()
        raise typer.Exit


def common(
    ctx: typer.Context,
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    server: Annotated[
        str | None,
        typer.Option(
            envvar="PENSTOCK_SERVER",
            help="The API to use, such as https://penstock.example.org, with the token in PENSTOCK_TOKEN.",
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            envvar="PENSTOCK_PROFILE",
            help="A profile of ~/.config/penstock/profiles.toml, with a server and a token.",
        ),
    ] = None,
) -> None:
    """Penstock runs work when events happen and keeps its promises when machines die."""
    from penstock.cli.command_runner import SERVER, not_over_http  # heavy, and help does not need it

    if ctx.invoked_subcommand not in ON_THIS_MACHINE:
        SERVER.set((server or None, profile or None))
    elif any(_is_typed(ctx, name) for name in ("server", "profile")):
        raise not_over_http()


def _is_typed(ctx: typer.Context, option: str) -> bool:
    source = ctx.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"
