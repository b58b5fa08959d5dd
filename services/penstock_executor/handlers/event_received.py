"""The handler of events from outside: any JSON body on the events exchange. An event is checked, stored once for each
message id, and matched.

The routing key is the trigger's ref. The message id, if there is one, is the dedupe key within (tenant, trigger,
source); it is never used as an id of ours. The header `tenant` names the tenant, if PENSTOCK_PRODUCERS allows it.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Mapping
from uuid import UUID

import orjson

from penstock import tracing
from penstock.errors import Conflict, InvalidInput, NotFound, PenstockError, Undecodable
from penstock.language.schemas import Schema
from penstock.language.terms.event_sources import of_message
from penstock.language.terms.ids import new_id
from penstock.language.terms.outside_names import check_name
from penstock.language.terms.producers import check_producer
from penstock.language.terms.system_triggers import HINT_PUBLISH, is_system
from penstock.messaging.consumer import Batch
from penstock.messaging.transports import UNREADABLE, Delivery
from penstock.run.json_integers import parsed
from penstock.run.stored_json import stored_form
from penstock.settings import Settings
from penstock.store.definitions import catalog
from penstock.store.events import events
from penstock.store.session.database import Transaction
from penstock.tracing.spans import event_span
from penstock_executor.handlers import event_created

LONGEST_TURN_S = 0.1
"""CPU seconds after which the checks of a batch yield to the event loop. A costly check takes twice as long."""


async def handle(batch: Batch, tx: Transaction) -> None:
    """Check and store events, one at a time. A bad event is refused, and does not affect others."""
    triggers = await _schemas(tx, {ref for d in batch.deliveries if "\0" not in (ref := d.routing_key or "")})
    new: dict[UUID, tuple[Delivery, events.NewEvent]] = {}
    began = time.thread_time()
    for delivery in batch.deliveries:
        if (
            time.thread_time() - began > LONGEST_TURN_S
        ):  # heartbeats of connections must not wait for a whole batch
            await asyncio.sleep(0)
            began = time.thread_time()
        try:
            event = _event(delivery, triggers, tx.settings)
        except PenstockError as error:
            batch.refuse(delivery, error)
        else:
            new[event.id] = delivery, event
    if not new:
        return
    answer = await events.store(tx, [event for _, event in new.values()], matched=True)
    for id, first in answer.conflicts.items():
        conflict = Conflict(
            f"message id already used by event {first} with another payload",
            hint="A message id names one event; give a different event a different id.",
        )
        batch.refuse(new[id][0], conflict)
    if answer.stored:
        await event_created.match(tx, await events.read(tx, answer.stored))


def _event(delivery: Delivery, triggers: Mapping[str, Schema], settings: Settings) -> events.NewEvent:
    """Return the event of a delivery. Raises the error that becomes the reason of the dead letter."""
    if UNREADABLE in delivery.headers:
        raise Undecodable(f"its properties cannot be read: {delivery.headers[UNREADABLE]}")
    tenant, user = check_producer(
        settings.producers, delivery.user_id, delivery.routing_key or "", delivery.headers
    )
    message_id = None if delivery.id is None else check_name(delivery.id, "the message id")
    source = of_message(check_name(delivery.app_id, "the app id") if delivery.app_id else None, user)
    payload = _payload(delivery, triggers, settings.payload_cap)
    id, trigger = new_id(), delivery.routing_key or ""
    return events.NewEvent(
        id=id,
        trigger=trigger,
        tenant=tenant,
        payload=payload.decode(),
        source=source,
        message_id=message_id,
        digest=hashlib.sha256(stored_form(payload)).hexdigest() if message_id else None,
        trace=_trace(id, trigger, delivery),
    )


def _trace(id: UUID, trigger: str, delivery: Delivery) -> tracing.Carrier | None:
    """Return the trace of the publisher, or one that the event begins; None if the sampler rejects it."""
    if not tracing.is_on():
        return None
    publisher_trace = tracing.trace_of(delivery.headers)
    if publisher_trace is None:
        return tracing.begins(trigger, event_span(id))
    return tracing.goes_on(trigger, publisher_trace)


def _payload(delivery: Delivery, triggers: Mapping[str, Schema], cap: int) -> bytes:
    """Return the payload as canonical JSON. Raises if it does not match the schema of its trigger. A body that is too
    long is not even parsed: many at once would take several times the memory."""
    if is_system(delivery.routing_key):
        raise InvalidInput(f"{delivery.routing_key} is not published", hint=HINT_PUBLISH)
    schema = triggers.get(delivery.routing_key or "")
    if schema is None:
        raise NotFound(
            f"unknown trigger {delivery.routing_key!r}",
            hint="The routing key has to be the ref of a trigger; see `penstock triggers`.",
        )
    if len(delivery.body) > cap:
        raise InvalidInput(
            f"payload of {delivery.routing_key} has {len(delivery.body):,} bytes; at most {cap:,} are taken",
            hint="Put large data in an object store and send a link, or raise PENSTOCK_PAYLOAD_CAP.",
        )
    try:
        payload = parsed(delivery.body)
    except orjson.JSONDecodeError as error:
        raise Undecodable(f"the body is not JSON: {error}") from None
    try:
        return schema.check(payload, what="payload", cap=cap, decoded=True)
    except InvalidInput as error:
        raise InvalidInput(f"payload of {delivery.routing_key}: {error.message}", hint=error.hint) from None


async def _schemas(tx: Transaction, refs: set[str]) -> dict[str, Schema]:
    schemas: dict[str, Schema] = {}
    for row in await catalog.current(tx, ["trigger"], refs):
        key = ("trigger", row.definition_id)
        if key not in tx.cache:
            tx.cache[key] = Schema(orjson.loads(row.body).get("schema"))
        if row.enabled:
            schemas[row.ref] = tx.cache[key]
    return schemas
