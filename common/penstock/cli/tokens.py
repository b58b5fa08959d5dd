"""`penstock tokens`: the tokens of the HTTP API."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.markup import escape

from penstock.cli.arguments import parse_duration
from penstock.cli.command_runner import ME, with_session
from penstock.cli.output import Json, err, json_line, out, table
from penstock.operate import access
from penstock.store import tokens as store

tokens = typer.Typer(help="Tokens of the HTTP API: make, list, revoke.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Who has it, such as ci or dashboard.")]


@tokens.command()
def create(
    name: Name,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help="read, operate, define, admin; or a role: viewer, operator, developer, administrator. May be repeated."
        ),
    ] = None,
    tenant: Annotated[
        list[str] | None, typer.Option(help="For this tenant alone. May be repeated. Default: all.")
    ] = None,
    expires: Annotated[str | None, typer.Option(help='After how long, such as "90d".')] = None,
    json: Json = False,
) -> None:
    """Make a token. It is printed once, and kept nowhere."""
    seconds = None if expires is None else parse_duration("--expires", expires)
    made, secret = with_session(
        lambda session: access.create_token(
            session, name, scope or [access.READ], tenants=tenant or (), seconds=seconds, by=ME
        )
    )
    if json:
        json_line({**asdict(made), "secret": secret})
        return
    err.print(
        f"[dim]{escape(name)} may: {', '.join(made.scopes)}. Keep this, nobody can find it out later; send it as "
        "`Authorization: Bearer ...`:[/dim]"
    )
    out.print(secret, markup=False, highlight=False)


@tokens.command("list")
def list_(json: Json = False) -> None:
    """List them, without their secrets."""
    rows = with_session(store.listed)
    if json:
        for row in rows:
            json_line(row)
        return
    table(
        ["name", "scopes", "tenants", "made by", "at", "expires"],
        [
            (row.name, row.scopes, row.tenants or "all", row.created_by, row.created_at, row.expires_at)
            for row in rows
        ],
        empty="Nobody has a token. Make one with: penstock tokens create NAME --scope operator",
    )


@tokens.command()
def revoke(name: Name, json: Json = False) -> None:
    """Take a token back. It is refused within seconds."""
    with_session(lambda session: access.revoke_token(session, name))
    if json:
        json_line({"revoked": name})
    else:
        out.print(f"Token {name} is revoked.", markup=False)


def add_to(app: typer.Typer) -> None:
    app.add_typer(tokens, name="tokens")
