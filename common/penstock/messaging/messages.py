"""The messages that are published besides foreign events: envelopes of ids, and broadcasts. See docs/wire-format.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from penstock.messaging import envelope
from penstock.messaging.transports import Message
from penstock.store.outbox.queues import message_type


class CancelRequested(BaseModel):
    """Broadcast to workers, best effort: the heartbeat says the same a little later."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    v: Literal[1] = 1
    type: Literal["cancel.requested"] = "cancel.requested"
    ids: list[UUID]


Due = Literal["schedules", "timers"]


class Sooner(BaseModel):
    """Broadcast to executors, best effort: schedules were changed or timers set, and one may be due sooner than the next
    that they know of. They look now and then anyway."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    v: Literal[1] = 1
    type: Literal["due.sooner"] = "due.sooner"
    what: Due


class WorkParked(BaseModel):
    """Broadcast to workers, best effort: there is work that some of them cannot run, or not now. Others of its queue look for
    it, as they do now and then anyway."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    v: Literal[1] = 1
    type: Literal["work.parked"] = "work.parked"
    queue: str


def message(outbox_id: int, queue: str, ids: Sequence[UUID]) -> Message:
    """The AMQP message of a staged envelope. Its first execution's id is its correlation and its trace,
    which is not sampled: the traces of executions are in their rows."""
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
