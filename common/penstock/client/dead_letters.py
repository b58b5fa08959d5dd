"""Dead letters: list them, look at one, put it back, or forget it.

An event from outside is put back by publishing it anew, so that it is checked again and stored once, under the same
message id. An envelope of ours is staged again. Work whose execution has ended is not put back: it would change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import orjson

from penstock.client.client import Client
from penstock.errors import Conflict, NotFound, Undecodable
from penstock.messaging import messages
from penstock.messaging.dead_letters import APP, TRIGGER
from penstock.store import executions, queues
from penstock.store.database import Row, Session

LIST = """
select id, queue, reason, type, message_id, count, first_at, last_at, octet_length(body) as bytes from dead_letter
where ($1::text is null or queue = $1) order by last_at desc limit $2
"""
FIND = """
select id, queue, reason, type, message_id, count, first_at, last_at, body, headers::text as headers
from dead_letter where id = $1
"""
DROP = "delete from dead_letter where id = any($1::uuid[]) returning id"
STAGE = "select stage($1, $2::uuid[], $3) as messages"


async def newest(session: Session, *, queue: str | None = None, limit: int = 50) -> list[Row]:
    """Dead letters, those that came (again) last first."""
    return await session.fetch(LIST, queue, limit)


async def find(session: Session, id: UUID) -> dict[str, Any]:
    """One with its headers, and its body as text. Raises NotFound."""
    rows = await session.fetch(FIND, id)
    if not rows:
        raise NotFound(f"no dead letter {id}", hint="`penstock dead-letters list` shows them.")
    row = dict(rows[0])
    return {**row, "headers": orjson.loads(row["headers"]), "body": row["body"].decode(errors="replace")}


async def drop(session: Session, ids: Sequence[UUID]) -> list[UUID]:
    """Forget these. Returns those that were there."""
    return [row["id"] for row in await session.fetch(DROP, list(ids))]


async def replay(client: Client, id: UUID) -> str:
    """Put it back where it came from, and forget it here; says what became of it. Should it fail again, it comes
    back. Raises NotFound, Conflict, and InvalidInput if the event is still refused."""
    letter = await find(client.session, id)
    if letter["queue"] == queues.EVENT_RECEIVED:
        said = await _publish(client, letter)
    else:
        said = await _stage(client, letter)
    await drop(client.session, [id])
    return said


async def _publish(client: Client, letter: Mapping[str, Any]) -> str:
    headers = letter["headers"]
    trigger = headers.get(TRIGGER)
    if trigger is None:
        raise Conflict(
            "it is not known which trigger this event was for", hint="Publish it again at its source."
        )
    try:
        payload = orjson.loads(letter["body"])
    except orjson.JSONDecodeError as error:
        raise Conflict(
            f"the body is not JSON ({error}): it would be refused again",
            hint="Publish it anew where it came from, and drop this one.",
        ) from None
    event = await client.publish(
        trigger,
        payload,
        key=letter["message_id"],
        source=headers.get(APP) or "client",
        tenant=str(headers.get("tenant") or "public"),
    )
    return f"event {event}"


async def _stage(client: Client, letter: Mapping[str, Any]) -> str:
    queue = letter["queue"]
    try:
        ids = messages.decode(letter["body"].encode()).ids
    except Undecodable as error:
        raise Conflict(
            f"{error.message}: it would be refused again",
            hint="Nothing but Penstock publishes to its own queues; drop it.",
        ) from None
    if queue.startswith(queues.WORK):
        await _still_wanted(client.session, ids)
    async with client.session.transaction() as tx:
        await tx.fetch(STAGE, queue, ids, len(ids))
    return f"{len(ids)} on {queue}; taken within seconds"


async def _still_wanted(session: Session, ids: Sequence[UUID]) -> None:
    """Raises Conflict where no execution of these is open any more."""
    rows = await executions.find(session, ids)
    if all(row["finished_at"] is not None for row in rows):
        raise Conflict(
            f"execution {ids[0]} has ended, it cannot run again",
            hint=f"Start a new one with the same parameters: `penstock show {ids[0]}` tells them.",
        )
