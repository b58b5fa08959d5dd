"""The messages that services publish to each other: envelopes of ids, and broadcasts. See docs/wire-format.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from penstock.messaging import envelope
from penstock.messaging.transports import Message
from penstock.store.outbox.queues import message_type


class CancelRequested(BaseModel):
    """A broadcast to workers, best effort, that executions have to end. Workers also learn it from their next
    heartbeat."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    v: Literal[1] = 1
    type: Literal["cancel.requested"] = "cancel.requested"
    ids: list[UUID]


Due = Literal["schedules", "timers"]


class Sooner(BaseModel):
    """A broadcast to executors, best effort: schedules were changed or timers set, and one may be due sooner than
    executors know. Executors also poll at intervals."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    v: Literal[1] = 1
    type: Literal["due.sooner"] = "due.sooner"
    what: Due


class WorkParked(BaseModel):
    """A broadcast to workers, best effort: work was parked that some workers of the queue cannot run, or not now.
    Others claim it. Workers also poll at intervals."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    v: Literal[1] = 1
    type: Literal["work.parked"] = "work.parked"
    queue: str


def message(outbox_id: int, queue: str, ids: Sequence[UUID]) -> Message:
    """Return the AMQP message of a staged envelope. The id of its first execution is its correlation id and its trace
    id. That trace is not sampled: the traces of executions are in their rows."""
    kind = message_type(queue)
    first = ids[0]
    return Message(
        queue=queue,
        body=envelope.encode(kind, ids),
        id=f"outbox-{outbox_id}",
        type=kind,
        outbox_id=outbox_id,
        correlation_id=str(first),
        headers={"traceparent": f"00-{first.hex}-{outbox_id & 0xFFFFFFFFFFFFFFFF:016x}-00"},
    )
