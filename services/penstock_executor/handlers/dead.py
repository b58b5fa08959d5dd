"""A dead letter: kept with its reason, and counted when it comes again. Where it stands for a scheduled execution, that
execution fails, so that nothing waits for work that will never be done."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from penstock import dead_letters, messages
from penstock.consumer import Batch
from penstock.database import Transaction
from penstock.errors import Undecodable
from penstock.ids import new_id
from penstock.moves import FAILED, SCHEDULED
from penstock.store import executions
from penstock.transports import Delivery

KEEP = """
insert into dead_letter (id, queue, reason, type, message_id, body, headers, fingerprint)
values ($1, $2, $3, $4, $5, $6, $7::jsonb, $8)
on conflict (fingerprint) do update set count = dead_letter.count + 1, last_at = clock_timestamp(),
    reason = excluded.reason
"""
STILL_SCHEDULED = """
select e.id, n.queue, n.envelope from execution e join namespace n on n.id = e.namespace_id
where e.id = any($1::uuid[]) and e.status = 'scheduled'
"""
STAGE = "select * from stage($1, $2::uuid[], 1)"


async def handle(batch: Batch, tx: Transaction) -> None:
    for delivery in batch.deliveries:
        queue, reason = origin(delivery)
        body = delivery.body[: 1024 * 1024]
        foreign = queue == messages.EVENT_RECEIVED
        headers = dead_letters.told(delivery) if foreign else dict(delivery.headers)
        # The same message again has the same fingerprint. Two events may well have the same body.
        same = (queue, delivery.routing_key, delivery.app_id, delivery.id) if foreign else (queue,)
        fingerprint = hashlib.sha256("\0".join(map(str, same)).encode() + b"\0" + body).hexdigest()
        await tx.fetch(
            KEEP,
            new_id(),
            queue,
            reason,
            delivery.type,
            delivery.id,
            body,
            orjson.dumps(headers, default=str).decode(),
            fingerprint,
        )
        if queue.startswith(messages.WORK):
            await _fail_or_single_out(tx, delivery, queue, reason)


async def _fail_or_single_out(tx: Transaction, delivery: Delivery, queue: str, reason: str) -> None:
    """An envelope of several is tried again as singles, to find the culprit; only a single fails its execution."""
    try:
        ids = messages.decode(delivery.body).ids
    except Undecodable:
        return
    if len(ids) > 1:
        still = [row["id"] for row in await tx.fetch(STILL_SCHEDULED, ids)]
        if still:
            await tx.stage(STAGE, queue, still)
        return
    error = orjson.dumps({"type": "DeadLetter", "message": reason}).decode()
    await executions.end(tx, ids, [SCHEDULED], FAILED, f"dead letter: {reason}", error)


def origin(delivery: Delivery) -> tuple[str, str]:
    """Which queue it died on, and why: as we said, or as RabbitMQ says in x-death."""
    headers: Mapping[str, Any] = delivery.headers
    reason = headers.get("x-penstock-reason")
    queue = headers.get("x-penstock-queue")
    deaths = headers.get("x-death") or []
    if deaths and not reason:
        first = deaths[-1]
        reason = str(first.get("reason", "rejected"))
        queue = str(first.get("queue", "")).split(".", 1)[-1]
    return str(queue or headers.get("x-first-death-queue") or "unknown"), str(
        reason or headers.get("x-first-death-reason") or "unknown"
    )
