"""The results of poll triggers' calls: their events are checked and stored, in one transaction with the state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson

from penstock import tracing
from penstock.errors import InvalidInput
from penstock.language.moves import COMPLETED
from penstock.language.schemas import Schema
from penstock.language.terms.ids import new_id
from penstock.messaging import dead_letters
from penstock.run.cut_texts import cut_end
from penstock.store.definitions import catalog
from penstock.store.events import events, polls
from penstock.store.executions.executions import ExecutionEnd
from penstock.store.outbox import queues
from penstock.store.outbox.dead_letters import APP, TRIGGER
from penstock.store.session.database import Transaction
from penstock.tracing.spans import event_span

SOURCE = "poll"
TENANT = "public"


@dataclass(slots=True)
class Found:
    """The outcome of a call. With `state` None, the trigger keeps its former state."""

    events: list[bytes] = field(default_factory=list)
    refused: list[tuple[Any, str]] = field(default_factory=list)
    state: str | None = None
    error: str | None = None


async def settle(tx: Transaction, ended_call: polls.EndedCall) -> Found:
    """Store the result of a call that has ended. The transaction has locked its poll trigger."""
    trigger, call = ended_call.trigger, ended_call.execution_id
    result = await _read(tx, trigger, ended_call.end or await polls.archived(tx, call))
    await _store(tx, trigger, result)
    for number, (payload, reason) in enumerate(result.refused):
        await _put_aside(tx, trigger, call, number, payload, reason)
    await polls.settle(tx, trigger, call, result.state, len(result.events), result.error)
    return result


async def _read(tx: Transaction, trigger: str, end: ExecutionEnd | None) -> Found:
    if end is None:
        return Found(error="its call was lost: its execution does not exist any more")
    if end.status != COMPLETED:
        error = orjson.loads(end.error) if end.error else {}
        message = ": ".join(str(error[name]) for name in ("type", "message") if error.get(name))
        return Found(error=cut_end(message or f"its call ended as {end.status}", 1000))
    document = orjson.loads(end.result) if end.result else None
    if not isinstance(document, dict) or not isinstance(document.get("events"), list):
        return Found(error="the result of its call is not a list of events and a state")
    result = Found(state=orjson.dumps(document.get("state") or {}).decode())
    schema = await _schema(tx, trigger)
    for payload in document["events"]:
        try:
            result.events.append(schema.check(payload, what="payload", cap=tx.settings.payload_cap))
        except InvalidInput as error:
            result.refused.append((payload, f"InvalidInput: payload of {trigger}: {error.message}"))
    if result.refused:
        result.error = cut_end(
            f"{len(result.refused)} of {len(document['events'])} events were refused (see "
            f"`penstock dead-letters list`), the first one: {result.refused[0][1]}",
            1000,
        )
    return result


async def _schema(tx: Transaction, trigger: str) -> Schema:
    rows = await catalog.current(tx, ["trigger"], [trigger])
    return Schema(orjson.loads(rows[0].body).get("schema") if rows else None)


async def _store(tx: Transaction, trigger: str, result: Found) -> None:
    if result.events:
        new = [_event(trigger, payload) for payload in result.events]
        await events.store(tx, new, matched=False)


def _event(trigger: str, payload: bytes) -> events.NewEvent:
    id = new_id()
    trace = tracing.begins(trigger, event_span(id))
    return events.NewEvent(trigger, TENANT, payload.decode(), SOURCE, trace=trace, id=id)


async def _put_aside(
    tx: Transaction, trigger: str, call: UUID, number: int, payload: Any, reason: str
) -> None:
    """Make a dead letter of a refused event, as of one from outside: it can be replayed once the schema matches."""
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
