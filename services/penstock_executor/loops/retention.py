"""Drops what is older than its retention: partitions whole, keys and logs in batches."""

from __future__ import annotations

import structlog

from penstock.database import Session
from penstock.service import Parts
from penstock_executor.loops.loop import Loop

log = structlog.get_logger()

DROP = "select drop_partitions($1, make_interval(days => $2))"
BATCHED = (
    ("event_key", "created_at", "(tenant, trigger, source, message_id)"),
    ("idempotency", "created_at", "(tenant, key)"),
    ("enforcement", "created_at", "(event_id, rule)"),
)
FORGET = """
delete from {table} where {key} in (
    select {columns} from {table} where {at} < now() - make_interval(days => $1) order by {at} limit 5000)
"""
FORGET_BACKFILLED = """
delete from fire_default where (schedule, due_at) in (
    select schedule, due_at from fire_default where made_at < now() - make_interval(days => $1) limit 5000)
"""


async def turn(parts: Parts, session: Session) -> bool:
    settings = parts.settings
    for parent, days in (
        ("history", settings.history_retention_days),
        ("log_line", settings.history_retention_days),
        ("event", settings.event_retention_days),
        ("archive", settings.archive_retention_days),
        ("fire", settings.history_retention_days),
        ("admission", 1),  # as long as the longest window of a rate
    ):
        async with session.transaction() as tx:
            await tx.execute("set local lock_timeout = '2s'")
            for row in await tx.fetch(DROP, parent, days):
                log.info("retention.dropped", partition=row[0])
    more = False
    for table, at, key in BATCHED:
        statement = FORGET.format(table=table, at=at, key=key, columns=key.strip("()"))
        async with session.transaction() as tx:
            done = await tx.execute(statement, settings.key_retention_days)
        more = more or done.endswith(" 5000")
    async with session.transaction() as tx:
        await tx.execute(FORGET_BACKFILLED, settings.history_retention_days)
    return more


LOOP = Loop("retention", lambda settings: 3600.0, turn)
