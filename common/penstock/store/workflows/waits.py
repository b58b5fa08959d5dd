"""Tasks that wait for events: those that an event may match, and their ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from penstock.store.executions import effects
from penstock.store.session.database import Transaction


class WaitKind(NamedTuple):
    """The waits for events of one trigger in one tenant. With `path` and `key`, only waits with a filter which
    requires that the value at this path of the event (as JSON) equals the key."""

    trigger: str
    tenant: str
    path: str | None = None
    key: str | None = None


@dataclass(slots=True)
class EventWait:
    """A task that has waited since this instant. `since` is None if the instant is to come, since the clock went back. `filter`
    is evaluated with the event and the values in `bound`."""

    execution: UUID
    kind: WaitKind
    since: datetime | None
    filter: str | None
    bound: Mapping[str, Any]


PATHS = "select trigger, path::text as path from event_path where trigger = any($1::text[])"


async def read_paths(tx: Transaction, triggers: Sequence[str]) -> dict[str, list[str]]:
    """Return, by trigger, the paths (JSON) at which filters have compared a key."""
    by_trigger: dict[str, list[str]] = {}
    for row in await tx.fetch(PATHS, triggers):
        by_trigger.setdefault(row["trigger"], []).append(row["path"])
    return by_trigger


OPEN = """
select w.execution_id, w.tenant, w.trigger, w.path::text as path, w.key,
    case when w.since <= clock_timestamp() then w.since end as since, p.params::text as params
from (
    select w.* from unnest($1::text[], $2::text[]) as x (trigger, tenant)
    join event_wait w on w.trigger = x.trigger and w.tenant = x.tenant and w.key is null
    union all
    select w.* from unnest($3::text[], $4::text[], $5::text[], $6::text[]) as x (trigger, tenant, path, key)
    join event_wait w on w.trigger = x.trigger and w.tenant = x.tenant and w.key = x.key and w.path = x.path::jsonb
) w
join payload p on p.execution_id = w.execution_id
order by w.execution_id
"""


async def read_open(tx: Transaction, kinds: Iterable[WaitKind]) -> list[EventWait]:
    """Return the waits of these kinds."""
    kinds = list(kinds)
    plain = [kind for kind in kinds if kind.key is None]
    keyed = [kind for kind in kinds if kind.key is not None]
    rows = await tx.fetch(
        OPEN,
        [kind.trigger for kind in plain],
        [kind.tenant for kind in plain],
        [kind.trigger for kind in keyed],
        [kind.tenant for kind in keyed],
        [kind.path for kind in keyed],
        [kind.key for kind in keyed],
    )
    waits = []
    for row in rows:
        params = orjson.loads(row["params"])
        # For an encrypted tenant, the column `key` has a digest of the key. The parameters have the key itself.
        key = None if row["key"] is None else params["key"]
        kind = WaitKind(row["trigger"], row["tenant"], row["path"], key)
        waits.append(EventWait(row["execution_id"], kind, row["since"], params["filter"], params["bound"]))
    return waits


@dataclass(slots=True)
class CompletedWait:
    """A wait that ends with this result (JSON), which is an event."""

    execution: UUID
    event: UUID
    result: str
    reason: str


COMPLETE = "select messages, moved from complete_waits($1::uuid[], $2::text[], $3::text[])"


async def complete(tx: Transaction, waits: Sequence[CompletedWait]) -> None:
    """End the waits among these that are still open: a timeout, a cancellation or another replica may have ended the
    others. Record them as the effects of their events."""
    [row] = await tx.stage(
        COMPLETE,
        [wait.execution for wait in waits],
        [wait.result for wait in waits],
        [wait.reason for wait in waits],
    )
    moved = {UUID(int=id.int) for id in row["moved"]}
    continued = [wait for wait in waits if wait.execution in moved]
    if continued:
        await effects.record_continued(tx, [(wait.event, wait.execution) for wait in continued])


NOTE = """
update execution e set reason = x.reason from unnest($1::uuid[], $2::text[]) as x (id, reason)
where e.id = x.id and e.status = 'waiting'
"""


async def note_reasons(tx: Transaction, reasons: Mapping[UUID, str]) -> None:
    """Store the reasons why these executions still wait."""
    ids = sorted(reasons)
    await tx.fetch(NOTE, ids, [reasons[id] for id in ids])
