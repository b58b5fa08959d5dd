"""The body of Penstock's own messages: an envelope of one or more ids.

Version 1 is a JSON object `{"v": 1, "type": "execution.requested", "ids": ["<uuid>", ...]}`; see docs/wire-format.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from uuid import UUID

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from penstock.errors import Undecodable

VERSION = 1


class Envelope(BaseModel):
    """The content of a message between services: the type of the event, and the ids that it concerns."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    v: Literal[1]
    type: str
    ids: list[UUID] = Field(min_length=1, max_length=10_000)


def encode(type: str, ids: Sequence[UUID]) -> bytes:
    """Return the body of an envelope."""
    return orjson.dumps({"v": VERSION, "type": type, "ids": [str(id) for id in ids]})


def decode(body: bytes) -> Envelope:
    """Parse a body. Raises Undecodable with the reason."""
    try:
        return Envelope.model_validate_json(body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        raise Undecodable(
            f"not an envelope of version {VERSION}: {where}: {first['msg']}",
            hint="Publish events to the events exchange; only Penstock publishes to its own queues.",
        ) from None
