"""The commands `penstock webhooks`: addresses for other programs, where each call becomes an event."""

from __future__ import annotations

from typing import Annotated

import orjson
import typer

from penstock.cli.arguments import parse_params
from penstock.cli.command_runner import ME, with_session
from penstock.cli.output import Json, json_line, listing, out
from penstock.operate import webhooks as operate
from penstock.store.access import webhooks as store
from penstock.store.access.webhooks import Webhook

webhooks = typer.Typer(
    help="Webhooks: HTTP requests of other programs, each of which becomes an event.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(help="The name: programs call /hooks/NAME of the API.")]


@webhooks.command("set")
def set_(
    name: Name,
    trigger: Annotated[
        str, typer.Option(help="The type (trigger) of the events. Each call becomes an event of this type.")
    ],
    signature: Annotated[
        str, typer.Option(help="secret (in a header), github, stripe, or standard (standardwebhooks.com).")
    ] = "secret",
    secret: Annotated[
        str | None,
        typer.Option(
            envvar="WEBHOOK_SECRET",
            help="The secret, which the caller has too: at least 16 characters. By default it stays unchanged.",
        ),
    ] = None,
    tenant: Annotated[str, typer.Option(help="The tenant of its events.")] = "public",
    header: Annotated[
        str | None,
        typer.Option(
            help="Only for --signature secret: the header that carries the secret. Default: X-Webhook-Secret."
        ),
    ] = None,
    key_header: Annotated[
        str | None,
        typer.Option(help="The header that identifies repeated calls, if the signature scheme has none."),
    ] = None,
    payload: Annotated[
        list[str] | None,
        typer.Option(
            help="name=value of the payload, with templates: 'id={{ body.id }}'. Default: the body."
        ),
    ] = None,
    completes: Annotated[
        str | None,
        typer.Option(
            help="A template for a callback id: 'gh:run:{{ body.workflow_run.id }}'. A call completes the executions that "
            "wait for a callback with this id."
        ),
    ] = None,
    fails: Annotated[
        str | None,
        typer.Option(
            help="A condition: \"body.conclusion != 'success'\". If it is true, the executions that wait for the callback "
            "fail instead of completing."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Create a webhook, or change it."""
    webhook = with_session(
        lambda session: operate.put(
            session,
            name,
            trigger=trigger,
            signature=signature,
            secret=secret,
            tenant=tenant,
            header=header,
            key_header=key_header,
            payload=parse_params(payload) if payload else None,
            completes=completes,
            fails=fails,
            by=ME,
        )
    )
    if json:
        json_line(_shown(webhook))
    else:
        out.print(f"Each call of /hooks/{name} is an event of {trigger}.")


@webhooks.command("list")
def list_(json: Json = False) -> None:
    """List webhooks, without their secrets."""
    rows = with_session(store.listed)
    listing(
        ["name", "trigger", "tenant", "signature", "created by", "created"],
        rows,
        lambda r: (r.name, r.trigger, r.tenant, r.signature, r.created_by, r.created_at),
        json=json,
        document=_shown,
        empty="There are no webhooks. Create one with: penstock webhooks set NAME --trigger TRIGGER",
    )


@webhooks.command()
def rm(name: Name, json: Json = False) -> None:
    """Remove a webhook. Its callers get 404."""
    with_session(lambda session: operate.remove(session, name))
    if json:
        json_line({"removed": name})
    else:
        out.print(f"Webhook {name} is gone.")


def _shown(row: Webhook) -> dict[str, object]:
    return {
        "name": row.name,
        "trigger": row.trigger,
        "tenant": row.tenant,
        "signature": row.signature,
        "header": row.header,
        "key_header": row.key_header,
        "payload": orjson.loads(row.payload) if row.payload else None,
        "completes": row.completes,
        "fails": row.fails,
        "created_by": row.created_by,
        "created_at": row.created_at,
    }


def add_to(app: typer.Typer) -> None:
    app.add_typer(webhooks, name="webhooks")
