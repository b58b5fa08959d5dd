"""The results of poll trigger calls: their events are checked and stored, in one transaction with the state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson

from penstock import tracing
from penstock.errors import InvalidInput
from penstock.language.ids import new_id
from penstock.language.moves import COMPLETED
from penstock.language.schemas import Schema
from penstock.messaging import dead_letters
from penstock.store import catalog, events, polls, queues
from penstock.store.database import Transaction
from penstock.store.dead_letters import APP, TRIGGER
from penstock.tracing.spans import event_span

SOURCE = "poll"
TENANT = "public"


@dataclass(slots=True)
class Found:
    """The outcome of a call. Without a state the one before it stays."""

    events: list[bytes] = field(default_factory=list)
    refused: list[tuple[Any, str]] = field(default_factory=list)
    state: str | None = None
    error: str | None = None


async def settle(tx: Transaction, ended: polls.EndedCall) -> Found:
    """Take in a call that has ended; the transaction holds its poll trigger."""
    trigger, call = ended.trigger, ended.execution_id
    found = await _read(tx, trigger, ended.end or await polls.archived(tx, call))
    await _store(tx, trigger, found)
    for number, (payload, reason) in enumerate(found.refused):
        await _put_aside(tx, trigger, call, number, payload, reason)
    await polls.settle(tx, trigger, call, found.state, len(found.events), found.error)
    return found


async def _read(tx: Transaction, trigger: str, end: polls.CallEnd | None) -> Found:
    if end is None:
        return Found(error="its call was lost: no execution of it is there any more")
    if end.status != COMPLETED:
        error = orjson.loads(end.error) if end.error else {}
        said = ": ".join(str(error[name]) for name in ("type", "message") if error.get(name))
        return Found(error=(said or f"its call ended as {end.status}")[:1000])
    given = orjson.loads(end.result) if end.result else None
    if not isinstance(given, dict) or not isinstance(given.get("events"), list):
        return Found(error="the result of its call is no list of events and a state")
    found = Found(state=orjson.dumps(given.get("state") or {}).decode())
    schema = await _schema(tx, trigger)
    for payload in given["events"]:
        try:
            found.events.append(schema.check(payload, what="payload"))
        except InvalidInput as error:
            found.refused.append((payload, f"InvalidInput: payload of {trigger}: {error.message}"))
    if found.refused:
        found.error = (
            f"{len(found.refused)} of {len(given['events'])} events were refused (see `penstock dead-letters list`), "
            f"the first one: {found.refused[0][1]}"
        )[:1000]
    return found


async def _schema(tx: Transaction, trigger: str) -> Schema:
    rows = await catalog.current(tx, ["trigger"], [trigger])
    return Schema(orjson.loads(rows[0].body).get("schema") if rows else None)


async def _store(tx: Transaction, trigger: str, found: Found) -> None:
    if found.events:
        new = [_event(trigger, payload) for payload in found.events]
        await events.store(tx, new, matched=False)


def _event(trigger: str, payload: bytes) -> events.NewEvent:
    id = new_id()
    trace = tracing.begins(trigger, event_span(id))
    return events.NewEvent(trigger, TENANT, payload.decode(), SOURCE, trace=trace, id=id)


async def _put_aside(
    tx: Transaction, trigger: str, call: UUID, number: int, payload: Any, reason: str
) -> None:
    """An event that is refused is a dead letter, as one from outside is: it can be replayed once the schema fits."""
    await dead_letters.keep(
        tx,
        [
            dead_letters.Letter(
                queue=queues.EVENT_RECEIVED,
                reason=reason,
                body=orjson.dumps(payload),
                type=None,
                message_id=f"{call}-{number}",
                headers={TRIGGER: trigger, APP: SOURCE},
                same=(trigger, str(call), number),
            ),
        ],
    )
