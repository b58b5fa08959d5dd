"""The end of waits of workflows' tasks for events that have come.

An event is for every task that waited when it was stored: all waits of its trigger and tenant are tested together. An
event counts if it was stored after the wait began, on the database's clock, and this transaction can see the wait. So
an event counts if it is published after the task was seen waiting, however late a replica handles the event. An event
that was stored before does not count. If the clock has gone back behind the begin of a wait, each event counts that is
handled until the clock is there again.

An event, a timeout and a cancellation race for the execution's row. The transaction that moves the row first ends the
wait.

Most filters require that a value of the event equals another value. The waits of such filters are looked up by that
value, so that an event costs only the waits that it may match.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any
from uuid import UUID

import orjson

from penstock.errors import ExpressionError
from penstock.language.expressions import key_of, value_at
from penstock.language.rules.event_filter import matches
from penstock.language.rules.event_rules import event_namespace
from penstock.store.events.events import Event
from penstock.store.session.database import Transaction
from penstock.store.workflows import waits
from penstock.store.workflows.waits import CompletedWait, WaitKind

SeenEvent = tuple[Event, dict[str, Any]]
"""An event, and the namespace of expressions about it."""


async def complete_waits(tx: Transaction, events: Sequence[Event]) -> None:
    """Complete the tasks that waited for one of these events, each with the first event that matches. If a filter
    raises an error, the event does not match, and the error is stored as the reason of the execution."""
    if not events:
        return
    by_kind = await _by_kind(tx, events)
    completed: list[CompletedWait] = []
    failed: dict[UUID, str] = {}
    for wait in await waits.read_open(tx, by_kind):
        for event, namespace in by_kind[wait.kind]:
            if wait.since is not None and event.created_at < wait.since:
                continue
            try:
                fits = matches(wait.filter, wait.bound, namespace)
            except ExpressionError as error:
                failed[wait.execution] = (
                    f"the filter of the wait failed with event {event.id}: {error.message}"
                )
                continue
            if fits:
                result = orjson.dumps(namespace).decode()
                completed.append(CompletedWait(wait.execution, event.id, result, f"met by event {event.id}"))
                failed.pop(wait.execution, None)
                break
    if completed:
        await waits.complete(tx, completed)
    if failed:
        await waits.note_reasons(tx, failed)


async def _by_kind(tx: Transaction, events: Sequence[Event]) -> dict[WaitKind, list[SeenEvent]]:
    """Group the events, oldest first, by each kind of wait that they may match."""
    paths = {
        trigger: [(path, orjson.loads(path)) for path in texts]
        for trigger, texts in (await waits.read_paths(tx, sorted({e.trigger for e in events}))).items()
    }
    by_kind: dict[WaitKind, list[SeenEvent]] = {}
    for event in sorted(events, key=attrgetter("created_at", "id")):
        namespace = event_namespace(event, orjson.loads(event.payload))
        trigger, tenant = event.trigger, event.tenant
        by_kind.setdefault(WaitKind(trigger, tenant), []).append((event, namespace))
        for path, steps in paths.get(trigger, ()):
            try:
                key = key_of(value_at(steps, namespace))
            except LookupError:
                continue
            if key is not None:
                by_kind.setdefault(WaitKind(trigger, tenant, path, key), []).append((event, namespace))
    return by_kind
