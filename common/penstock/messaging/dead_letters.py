"""Messages that could not be handled, kept with their reason: the same one again is counted."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from penstock.messaging.pieces import pieces
from penstock.messaging.transports import Delivery
from penstock.store.outbox import dead_letters
from penstock.store.outbox.dead_letters import APP, TRIGGER, USER, KeptLetter
from penstock.store.session.database import Transaction
from penstock.store.session.storable import storable

LARGEST = 1024 * 1024
"""Bytes of a body that are kept."""
LONGEST = 2000
"""Characters of a reason that are kept."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A message that cannot be handled, and why. One of the same queue and body is the same one again, unless `same`
    tells them apart."""

    queue: str
    reason: str
    body: bytes
    type: str | None = None
    message_id: str | None = None
    headers: Mapping[str, Any] = field(default_factory=dict)
    same: tuple[object, ...] = ()
    counted: bool = False
    """Whether it is only counted: its body is not kept, since what it was about is done."""


async def keep(tx: Transaction, letters: Sequence[Letter]) -> list[int]:
    """Keep dead letters, or count those that are there already. Return how often each came by now."""
    by_fingerprint: dict[str, KeptLetter] = {}
    prints = []
    for letter in letters:
        kept_letter = _kept(letter)
        earlier = by_fingerprint.get(kept_letter.fingerprint)
        by_fingerprint[kept_letter.fingerprint] = (
            kept_letter if earlier is None else replace(kept_letter, count=earlier.count + 1)
        )
        prints.append(kept_letter.fingerprint)
    counts: dict[str, int] = {}
    # Each process locks letters in this order.
    for piece in pieces(
        [by_fingerprint[fingerprint] for fingerprint in sorted(by_fingerprint)],
        lambda letter: len(letter.body),
    ):
        counts |= await dead_letters.keep(tx, piece)
    return [counts[fingerprint] for fingerprint in prints]


def _kept(letter: Letter) -> KeptLetter:
    body = b"" if letter.counted else letter.body[:LARGEST]
    same = "\0".join(
        map(str, (letter.queue, letter.reason, "counted") if letter.counted else (letter.queue, *letter.same))
    )
    return KeptLetter(
        queue=storable(letter.queue),
        reason=storable(letter.reason[:LONGEST]),
        type=storable(letter.type),
        message_id=storable(letter.message_id),
        body=body,
        cut_from=len(letter.body) if letter.counted or len(body) < len(letter.body) else None,
        headers=orjson.dumps(storable(letter.headers)).decode(),
        fingerprint=hashlib.sha256(
            same.encode(errors="replace") + b"\0" + (b"" if letter.counted else letter.body)
        ).hexdigest(),
    )


def headers_of_event(delivery: Delivery) -> dict[str, Any]:
    """The headers to keep of a dead event from outside, with what else it takes to publish it again."""
    return {**delivery.headers, TRIGGER: delivery.routing_key, APP: delivery.app_id, USER: delivery.user_id}
