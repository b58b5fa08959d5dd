"""The rows of webhooks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import Field

from penstock.store.session.database import Session, Transaction
from penstock.store.session.http_field_types import JsonTextOrNull
from penstock.store.session.rows import first_as, rows_as


@dataclass(frozen=True, slots=True)
class Webhook:
    """An address below /hooks, without its secret: requests to it become events of `trigger`."""

    name: Annotated[
        str, Field(description="The name of the webhook: the last part of its address `/hooks/NAME`.")
    ]
    trigger: str
    tenant: Annotated[str, Field(description="The tenant of the events.")]
    signature: str
    header: Annotated[
        str | None,
        Field(
            description="With the signature `secret`: the header that carries the secret. null: X-Webhook-Secret."
        ),
    ]
    key_header: Annotated[
        str | None,
        Field(
            description="The header with the id of a call; a second call with the same id is ignored. null: "
            "the one of the signature scheme, if it has one."
        ),
    ]
    payload: Annotated[
        JsonTextOrNull,
        Field(description="The template of the event's payload; null: the payload is the body of the call."),
    ]
    completes: Annotated[
        str | None,
        Field(
            description="The template for the id of a callback. Executions that wait for the callback with this id "
            "then continue. null: a call only creates an event."
        ),
    ]
    fails: Annotated[
        str | None,
        Field(
            description="The condition under which the executions that wait for the callback fail; null: never."
        ),
    ]
    created_by: str
    created_at: datetime


COLUMNS = (
    "name, trigger, tenant, signature, header, key_header, payload::text as payload, completes, fails, "
    "created_by, created_at"
)
PUT = f"""
insert into webhook (name, trigger, tenant, signature, header, key_header, payload, created_by, completes, fails)
values ($1, $2, $3, $4, $5, $6, $7::text::jsonb, $8, $9, $10)
on conflict (name) do update set trigger = excluded.trigger, tenant = excluded.tenant, signature = excluded.signature,
    header = excluded.header, key_header = excluded.key_header, payload = excluded.payload,
    completes = excluded.completes, fails = excluded.fails
where not $11
returning {COLUMNS}
"""


async def put(
    tx: Transaction,
    name: str,
    trigger: str,
    tenant: str,
    signature: str,
    header: str | None,
    key_header: str | None,
    payload: str | None,
    completes: str | None,
    fails: str | None,
    by: str,
    only_new: bool = False,
) -> Webhook | None:
    """Insert a webhook, or change it. With `only_new`, return None if it exists, and change nothing."""
    rows = await tx.fetch(
        PUT, name, trigger, tenant, signature, header, key_header, payload, by, completes, fails, only_new
    )
    return first_as(Webhook, rows)


LIST = f"select {COLUMNS} from webhook order by name"


async def listed(session: Session) -> list[Webhook]:
    """Return all webhooks by name."""
    return rows_as(Webhook, await session.fetch(LIST))


FIND = f"select {COLUMNS} from webhook where name = $1"


async def find(session: Session, name: str) -> Webhook | None:
    return first_as(Webhook, await session.fetch(FIND, name))


DELETE = """
with forgotten as (delete from secret where tenant = '' and name = 'webhook:' || $1),
refusals as (delete from webhook_refusal where webhook = $1)
delete from webhook where name = $1 returning name
"""


async def delete(session: Session, name: str) -> bool:
    """Delete a webhook with its secret and the counts of its refused calls. Return False if it does not exist."""
    return bool(await session.fetch(DELETE, name))
