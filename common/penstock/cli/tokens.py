"""The commands `penstock tokens`: the tokens of the HTTP API."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.markup import escape

from penstock.cli.arguments import parse_delay, parse_duration
from penstock.cli.command_runner import ME, with_session
from penstock.cli.output import Json, err, json_line, listing, out
from penstock.operate import access
from penstock.store.access import tokens as store
from penstock.store.access.tokens import Token
from penstock.store.session.database import Session

tokens = typer.Typer(help="Create, rotate, list and revoke tokens of the HTTP API.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The name of its holder, such as ci or dashboard.")]
Expires = Annotated[str, typer.Option(help='The time until it expires, such as "30d", or "never".')]


@tokens.command()
def create(
    name: Name,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{', '.join((*access.SCOPES, *access.NARROW, access.WORK))}; start:PACK.NAME, 'start:PACK.*'; or a role: "
            f"{', '.join(access.ROLES)}. May be repeated."
        ),
    ] = None,
    tenant: Annotated[
        list[str] | None, typer.Option(help="Only for this tenant. May be repeated. Default: all.")
    ] = None,
    route: Annotated[
        list[str] | None,
        typer.Option(help="With scope work: only for workers of this route. May be repeated. Default: all."),
    ] = None,
    pack: Annotated[
        list[str] | None,
        typer.Option(help="With scope work: only for actions of this pack. May be repeated. Default: all."),
    ] = None,
    expires: Expires = "90d",
    json: Json = False,
) -> None:
    """Create a token. The secret of the token is printed once, and not stored."""
    seconds = _lifetime(expires)

    async def work(session: Session) -> tuple[Token, str, list[str]]:
        token, secret = await access.create_token(
            session,
            name,
            scope or [access.READ],
            tenants=tenant or (),
            routes=route or (),
            packs=pack or (),
            seconds=seconds,
            by=ME,
        )
        return token, secret, await access.warnings_of(session, token.scopes)

    token, secret, warnings = with_session(work)
    for sentence in warnings:
        err.print(f"warning: {escape(sentence)}", highlight=False)
    if json:
        json_line({**asdict(token), "secret": secret, "warnings": warnings})
        return
    _show(token, secret)


@tokens.command()
def rotate(
    name: Name,
    overlap: Annotated[str, typer.Option(help="The time for which the old secret stays valid.")] = "1d",
    expires: Expires = "90d",
    json: Json = False,
) -> None:
    """Replace the secret of a token. The old secret stays valid for a while, so that the holder can change over."""
    overlap_s = parse_delay("--overlap", overlap)
    token, secret = with_session(
        lambda session: access.rotate_token(session, name, overlap=overlap_s, seconds=_lifetime(expires))
    )
    if json:
        json_line({**asdict(token), "secret": secret})
        return
    if token.old_until is not None:
        err.print(f"[dim]The old secret is valid until {token.old_until:%Y-%m-%d %H:%M %Z}.[/dim]")
    _show(token, secret)


@tokens.command("list")
def list_(json: Json = False) -> None:
    """List tokens, without their secrets."""
    rows = with_session(store.listed)
    listing(
        ["name", "scopes", "tenants", "created by", "created", "last used", "expires"],
        rows,
        lambda row: (
            row.name,
            row.scopes,
            row.tenants or "all",
            row.created_by,
            row.created_at,
            row.used_at,
            row.expires_at,
        ),
        json=json,
        empty="There are no tokens. Create one with: penstock tokens create NAME --scope operator",
    )


@tokens.command()
def revoke(name: Name, json: Json = False) -> None:
    """Revoke a token. It is refused within seconds."""
    with_session(lambda session: access.revoke_token(session, name))
    if json:
        json_line({"revoked": name})
    else:
        out.print(f"Token {name} is revoked.", markup=False)


def _lifetime(word: str) -> float | None:
    return None if word == "never" else parse_duration("--expires", word)


def _show(token: Token, secret: str) -> None:
    err.print(
        f"[dim]The scopes of {escape(token.name)}: {', '.join(token.scopes)}. Store this secret now, since "
        "it is not shown again. Send it as `Authorization: Bearer ...`:[/dim]"
    )
    out.print(secret, markup=False, highlight=False)


def add_to(app: typer.Typer) -> None:
    app.add_typer(tokens, name="tokens")
