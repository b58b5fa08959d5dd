"""Dead letters: list them, look at one, put it back, or forget it.

An event from outside is put back by publishing it anew, so that it is checked again and stored once, under the same
message id. An envelope of ours is staged again. Work whose execution has ended is not put back: it would change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import orjson

from penstock.client.client import Client
from penstock.errors import Conflict, NotFound, Undecodable
from penstock.messaging import envelope
from penstock.messaging.dead_letters import APP, TRIGGER
from penstock.store import dead_letters, executions, outbox, queues
from penstock.store.database import Session
from penstock.store.dead_letters import DeadLetter, DeadLetterSummary


async def newest(session: Session, *, queue: str | None = None, limit: int = 50) -> list[DeadLetterSummary]:
    """Dead letters (of one queue), those that came (again) last first."""
    return await dead_letters.newest(session, queue, limit)


async def find(session: Session, id: UUID) -> DeadLetter:
    """One with its headers, and its body as text. Raises NotFound."""
    letter = await dead_letters.find(session, id)
    if letter is None:
        raise NotFound(f"no dead letter {id}", hint="`penstock dead-letters list` shows them.")
    return letter


async def drop(session: Session, ids: Sequence[UUID]) -> list[UUID]:
    """Forget these. Returns those that were there."""
    return await dead_letters.drop(session, ids)


async def replay(client: Client, id: UUID) -> str:
    """Put it back where it came from, and forget it here; says what became of it. Should it fail again, it comes
    back. Raises NotFound, Conflict, and InvalidInput if the event is still refused."""
    letter = await find(client.session, id)
    if letter.queue == queues.EVENT_RECEIVED:
        said = await _publish(client, letter)
    else:
        said = await _stage(client, letter)
    await drop(client.session, [id])
    return said


async def _publish(client: Client, letter: DeadLetter) -> str:
    headers = letter.headers
    trigger = headers.get(TRIGGER)
    if trigger is None:
        raise Conflict(
            "it is not known which trigger this event was for", hint="Publish it again at its source."
        )
    try:
        payload = orjson.loads(letter.body)
    except orjson.JSONDecodeError as error:
        raise Conflict(
            f"the body is not JSON ({error}): it would be refused again",
            hint="Publish it anew where it came from, and drop this one.",
        ) from None
    event = await client.publish(
        trigger,
        payload,
        key=letter.message_id,
        source=headers.get(APP) or "client",
        tenant=str(headers.get("tenant") or "public"),
    )
    return f"event {event}"


async def _stage(client: Client, letter: DeadLetter) -> str:
    queue = letter.queue
    try:
        ids = envelope.decode(letter.body.encode()).ids
    except Undecodable as error:
        raise Conflict(
            f"{error.message}: it would be refused again",
            hint="Nothing but Penstock publishes to its own queues; drop it.",
        ) from None
    if queues.is_work(queue):
        await _still_wanted(client.session, ids)
    async with client.session.transaction() as tx:
        await outbox.stage(tx, queue, ids, len(ids))
    return f"{len(ids)} on {queue}; taken within seconds"


async def _still_wanted(session: Session, ids: Sequence[UUID]) -> None:
    """Raises Conflict where no execution of these is open any more."""
    rows = await executions.find(session, ids)
    if all(row.finished_at is not None for row in rows):
        raise Conflict(
            f"execution {ids[0]} has ended, it cannot run again",
            hint=f"Start a new one with the same parameters: `penstock show {ids[0]}` tells them.",
        )
