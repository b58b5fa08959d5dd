"""The list of events, with its filter."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import orjson
from pydantic import Field

from penstock.language.terms.ids import first_id
from penstock.store.executions.execution_list import CLOCKS, refuse_encrypted
from penstock.store.session.database import Session
from penstock.store.session.rows import rows_as


@dataclass(frozen=True, slots=True)
class EventFilter:
    """A filter of events: all events, or those that match every field that is set. `since` and `until` (aware) bound
    the instant of storage. `payload` has names and values that an event's payload contains, `key` is a message id.
    `tenants` restricts the result to these tenants, whatever the other fields are."""

    trigger: str | None = None
    tenant: str | None = None
    source: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    payload: Mapping[str, Any] | None = None
    key: str | None = None
    tenants: Collection[str] | None = None


@dataclass(slots=True)
class ListedEvent:
    """An event of the list."""

    id: Annotated[UUID, Field(description="The id of the event.")]
    trigger: str
    tenant: str
    source: str | None
    created_at: datetime
    payload: Any
    matched: Annotated[int, Field(description="The number of rules that matched, including failed rules.")]
    failed: Annotated[
        int,
        Field(
            description="The number of rules among them that failed: the condition or the parameters raised an "
            "error, so that they started nothing."
        ),
    ]
    continued: Annotated[
        int, Field(description="The number of executions whose wait it ended. They continued or failed.")
    ] = 0


PAGE = """
select e.id, e.trigger, e.tenant, e.source, e.created_at, e.payload::text as payload,
    (select count(*) from enforcement f where f.event_id = e.id) as matched,
    (select count(*) from enforcement f where f.event_id = e.id and f.status = 'failed') as failed,
    (select count(*) from effect f where f.parent = e.id) as continued
from event e
where ($1::text is null or e.trigger = $1) and ($2::text is null or e.tenant = $2)
    and ($3::text is null or e.source = $3)
    and ($4::timestamptz is null or e.created_at >= $4) and ($5::timestamptz is null or e.created_at < $5)
    and ($6::uuid is null or e.id >= $6) and ($7::uuid is null or e.id < $7)
    and ($8::jsonb is null or e.payload @> $8)
    and ($9::text is null or e.id = any(array(
        select k.event_id from event_key k
        where k.message_id = $9 and ($1::text is null or k.trigger = $1) and ($2::text is null or k.tenant = $2))))
    and ($10::uuid is null or e.id < $10)
    and ($12::text[] is null or e.tenant = any($12))
order by e.id desc limit $11
"""


# A key is stored by the statement that stores its event, so both have the same instant, which an index finds.
KEY_OF = "select message_id from event_key where created_at = $2 and event_id = $1"


async def key_of(session: Session, id: UUID, created_at: datetime) -> str | None:
    """Return the key (message id) of an event that was stored at `created_at`. Return None if it has no key, or if the
    key is not kept any more."""
    return next((str(row["message_id"]) for row in await session.fetch(KEY_OF, id, created_at)), None)


async def page(
    session: Session, filters: EventFilter = EventFilter(), *, before: UUID | None = None, limit: int = 50
) -> list[ListedEvent]:
    """Return at most `limit` events, newest first, with decoded payloads. `before` is the last id of the page before.
    Raises InvalidInput for a filter by the payloads of an encrypted tenant."""
    if filters.payload:
        await refuse_encrypted(session, "payload", filters.tenant, filters.tenants)
    rows = await session.fetch(
        PAGE,
        filters.trigger,
        filters.tenant,
        filters.source,
        filters.since,
        filters.until,
        first_id(filters.since, -CLOCKS) if filters.since else None,
        first_id(filters.until, CLOCKS) if filters.until else None,
        orjson.dumps(filters.payload).decode() if filters.payload else None,
        filters.key,
        before,
        limit,
        None if filters.tenants is None else list(filters.tenants),
    )
    events = rows_as(ListedEvent, rows)
    for event in events:
        event.payload = orjson.loads(event.payload)
    return events
