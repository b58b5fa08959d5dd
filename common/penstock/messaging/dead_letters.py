"""The storage of messages that could not be handled, with their reason. A repeated message is counted, not stored
again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from penstock.messaging.pieces import pieces
from penstock.messaging.transports import Delivery
from penstock.run.cut_texts import cut_end
from penstock.store.outbox import dead_letters
from penstock.store.outbox.dead_letters import APP, TRIGGER, USER, KeptLetter
from penstock.store.session.database import Transaction
from penstock.store.session.storable import storable

LARGEST = 1024 * 1024
"""The largest stored body in bytes; a longer body is cut."""
LONGEST = 2000
"""The longest stored reason in characters."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A message that cannot be handled, and the reason. Messages of the same queue with the same body are one letter
    that arrived again, unless `same` differs."""

    queue: str
    reason: str
    body: bytes
    type: str | None = None
    message_id: str | None = None
    headers: Mapping[str, Any] = field(default_factory=dict)
    same: tuple[object, ...] = ()
    counted: bool = False
    """If true, the letter is only counted and its body is not stored, since its effect is done already."""


async def keep(tx: Transaction, letters: Sequence[Letter]) -> list[int]:
    """Store dead letters, or add to the counts of those that exist. Return how often each has arrived."""
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
    # The order of fingerprints is the order in which each process locks letters.
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
        reason=storable(cut_end(letter.reason, LONGEST)),
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
    """Return the headers to store of a dead event from outside, with all that is needed to publish it again."""
    return {**delivery.headers, TRIGGER: delivery.routing_key, APP: delivery.app_id, USER: delivery.user_id}
