"""The commands `penstock webhooks`: addresses for other programs, where each call becomes an event."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Annotated

import orjson
import typer

from penstock.cli.arguments import parse_params
from penstock.cli.command_runner import ME, with_session
from penstock.cli.output import Json, err, fields, json_line, listing, out, table
from penstock.operate import webhooks as operate
from penstock.store.access import webhook_refusals
from penstock.store.access import webhooks as store
from penstock.store.access.webhook_refusals import WebhookRefusals
from penstock.store.access.webhooks import Webhook
from penstock.store.session.database import Session

webhooks = typer.Typer(
    help="List, set, show and remove webhooks. Each call of a webhook becomes an event.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(help="The name: programs call /hooks/NAME of the API.")]


@webhooks.command("set")
def set_(
    name: Name,
    trigger: Annotated[
        str,
        typer.Option(
            help="The trigger of the events. Each call of the webhook becomes an event of this trigger."
        ),
    ],
    signature: Annotated[
        str, typer.Option(help="secret (in a header), github, stripe, or standard (standardwebhooks.com).")
    ] = "secret",
    secret: Annotated[
        str | None,
        typer.Option(
            envvar="WEBHOOK_SECRET",
            help="The secret, which the caller also has: at least 16 characters. By default the secret stays unchanged.",
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
            help="A template for a callback id: 'gh:run:{{ body.workflow_run.id }}'. Executions that "
            "wait for the callback with this id then continue."
        ),
    ] = None,
    fails: Annotated[
        str | None,
        typer.Option(
            help="A condition: \"body.conclusion != 'success'\". If the condition is true, the call makes the waiting "
            "executions fail."
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
    rows, counted = with_session(_with_refusals)
    refused = Counter[str | None]()
    for refusals in counted:
        refused[refusals.webhook] += refusals.calls
    listing(
        ["name", "trigger", "tenant", "signature", "refused", "created by", "created"],
        rows,
        lambda r: (
            r.name,
            r.trigger,
            r.tenant,
            r.signature,
            refused[r.name] or None,
            r.created_by,
            r.created_at,
        ),
        json=json,
        document=lambda r: {**_shown(r), "refused": refused[r.name]},
        empty="There are no webhooks. Create one with: penstock webhooks set NAME --trigger TRIGGER",
    )
    if refused and not json:
        err.print(
            f"{refused.total():,} calls were refused in the last seven days. List the reasons: penstock webhooks refusals",
            highlight=False,
        )


async def _with_refusals(session: Session) -> tuple[list[Webhook], list[WebhookRefusals]]:
    return await store.listed(session), await webhook_refusals.listed(session)


@webhooks.command()
def show(name: Name, json: Json = False) -> None:
    """Show a webhook, and its calls that were refused in the last seven days."""

    async def read(session: Session) -> tuple[Webhook, list[WebhookRefusals]]:
        return await operate.find(session, name), await webhook_refusals.listed(session, name)

    webhook, refusals = with_session(read)
    if json:
        json_line({**_shown(webhook), "refusals": [asdict(row) for row in refusals]})
        return
    fields({word.replace("_", " "): value for word, value in _shown(webhook).items()})
    out.print()
    table(
        ["refused because", "calls", "last"],
        [(row.reason, row.calls, row.last_at) for row in refusals],
        empty="No call was refused in the last seven days.",
    )


@webhooks.command()
def refusals(json: Json = False) -> None:
    """List how many calls were refused in the last seven days, by webhook and reason, and when the last one was. The
    list includes calls of unknown webhooks and calls of callbacks."""
    listing(
        ["webhook", "reason", "calls", "last", "last name"],
        with_session(webhook_refusals.listed),
        lambda r: (r.webhook or "none", r.reason, r.calls, r.last_at, r.last_name),
        json=json,
        empty="No call was refused in the last seven days.",
    )


@webhooks.command()
def rm(name: Name, json: Json = False) -> None:
    """Remove a webhook. Its callers get 404."""
    with_session(lambda session: operate.remove(session, name))
    if json:
        json_line({"removed": name})
    else:
        out.print(f"Webhook {name} is removed.")


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
