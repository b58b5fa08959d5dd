"""Ends the waits of workflows' tasks for events that have come.

An event is for every task that waited when it was stored: all waits of its trigger and tenant are looked at together. It
counts if it was stored after the wait began, on the database's clock, and whoever looks can see the wait. So what is
published once a task is seen to be waiting counts, whoever is slow; what was stored before does not, however late it is
looked at. Whoever moves the execution first has ended the wait; a timeout or a cancellation may be that.

Most filters ask that something of the event equals a value. Those waits are found by that value, so that an event costs
what it may fit, not what there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any
from uuid import UUID

import orjson

from penstock.engine.task_input import matches
from penstock.errors import ExpressionError
from penstock.language.event_rules import told
from penstock.language.expressions import key_of, value_at
from penstock.store.database import Row, Transaction

PATHS = "select trigger, path::text as path from event_path where trigger = any($1::text[])"
OPEN = """
select w.execution_id, w.tenant, w.trigger, w.path::text as path, w.key, w.since, p.params::text as params
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
COMPLETE = "select messages from complete_waits($1::uuid[], $2::text[], $3::text[])"
NOTE = """
update execution e set reason = x.reason from unnest($1::uuid[], $2::text[]) as x (id, reason)
where e.id = x.id and e.status = 'waiting'
"""


async def meet(tx: Transaction, events: Sequence[Row]) -> None:
    """Complete the tasks that waited for one of these events, each with the first that fits. One with which a filter is
    in error does not fit; that is noted as the reason of the execution."""
    if not events:
        return
    some = await _sorted(tx, events)
    met: list[tuple[UUID, str, str]] = []
    wrong: dict[UUID, str] = {}
    for wait in await _waiting(tx, some):
        wanted = orjson.loads(wait["params"])
        for event, seen in some[wait["trigger"], wait["tenant"], wait["path"], wait["key"]]:
            if event["created_at"] < wait["since"]:
                continue
            try:
                fits = matches(wanted["filter"], wanted["bound"], seen)
            except ExpressionError as error:
                wrong[wait["execution_id"]] = f"its filter failed with event {event['id']}: {error.message}"
                continue
            if fits:
                met.append((wait["execution_id"], orjson.dumps(seen).decode(), f"met by event {event['id']}"))
                wrong.pop(wait["execution_id"], None)
                break
    if met:
        await tx.stage(COMPLETE, *(list(column) for column in zip(*met, strict=True)))
    if wrong:
        await tx.fetch(NOTE, sorted(wrong), [wrong[id] for id in sorted(wrong)])


Kind = tuple[str, str, str | None, str | None]
"""Trigger and tenant; and for those that have this key at this path, both."""
Seen = tuple[Row, dict[str, Any]]
"""An event, and what expressions see of it."""


async def _sorted(tx: Transaction, events: Sequence[Row]) -> dict[Kind, list[Seen]]:
    """The events, oldest first, by all kinds of which they are."""
    paths: dict[str, list[tuple[str, list[str | int]]]] = {}
    for row in await tx.fetch(PATHS, sorted({event["trigger"] for event in events})):
        paths.setdefault(row["trigger"], []).append((row["path"], orjson.loads(row["path"])))
    found: dict[Kind, list[Seen]] = {}
    for event in sorted(events, key=itemgetter("created_at", "id")):
        seen = told(event, orjson.loads(event["payload"]))
        trigger, tenant = event["trigger"], event["tenant"]
        found.setdefault((trigger, tenant, None, None), []).append((event, seen))
        for path, steps in paths.get(trigger, ()):
            try:
                key = key_of(value_at(steps, seen))
            except LookupError:
                continue
            if key is not None:
                found.setdefault((trigger, tenant, path, key), []).append((event, seen))
    return found


async def _waiting(tx: Transaction, kinds: Iterable[Kind]) -> list[Row]:
    """The waits for events of these kinds."""
    plain = [[*column] for column in zip(*(kind[:2] for kind in kinds if kind[3] is None), strict=True)]
    keyed = [[*column] for column in zip(*(kind for kind in kinds if kind[3] is not None), strict=True)]
    return await tx.fetch(OPEN, *plain, *(keyed or ([], [], [], [])))
