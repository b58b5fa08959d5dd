"""The wire format. A message is an envelope of one or more ids; an event from outside brings its payload.

Version 1 of an envelope is a JSON object `{"v": 1, "type": "execution.requested", "ids": ["<uuid>", ...]}`.
An event from outside is any JSON body on the `<prefix>.events` exchange; see docs/wire-format.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from uuid import UUID

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from penstock.errors import Undecodable
from penstock.messaging.transports import Message
from penstock.store.queues import message_type

VERSION = 1


class Envelope(BaseModel):
    """What travels between the services: ids, and what happened to them."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    v: Literal[1]
    type: str
    ids: list[UUID] = Field(min_length=1, max_length=10_000)


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


def encode(type: str, ids: Sequence[UUID]) -> bytes:
    """The body of an envelope."""
    return orjson.dumps({"v": VERSION, "type": type, "ids": [str(id) for id in ids]})


def decode(body: bytes) -> Envelope:
    """The envelope of a body. Raises Undecodable with the reason."""
    try:
        return Envelope.model_validate_json(body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        raise Undecodable(
            f"not an envelope of version {VERSION}: {where}: {first['msg']}",
            hint="Publish events to the events exchange; only Penstock publishes to its own queues.",
        ) from None


def message(outbox_id: int, queue: str, ids: Sequence[UUID]) -> Message:
    """The AMQP message of a staged envelope. Its first execution's id is its correlation and its trace."""
    kind = message_type(queue)
    first = ids[0]
    return Message(
        queue=queue,
        body=encode(kind, ids),
        id=f"outbox-{outbox_id}",
        type=kind,
        outbox_id=outbox_id,
        correlation_id=str(first),
        headers={"traceparent": f"00-{first.hex}-{outbox_id & 0xFFFFFFFFFFFFFFFF:016x}-01"},
    )
