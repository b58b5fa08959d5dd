"""Drops what is older than its retention: partitions whole, keys and dead letters in batches. What is to be kept
elsewhere is written to files first."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import asyncpg
import structlog

from penstock.service.assembly import Parts
from penstock.settings import Settings
from penstock.store.database import Session
from penstock_executor import archive_export
from penstock_executor.loops.loop import Loop

log = structlog.get_logger()

OLD = "select * from old_partitions($1, make_interval(days => $2))"
# Two that drop one table at once can end in an internal error of PostgreSQL: the second one looks when the first is done.
ALONE = "select pg_advisory_xact_lock(7, -3)"
# Whoever waits for this lock keeps everybody else waiting too, so it does not wait for long: it comes again.
PATIENCE = "set local lock_timeout = '200ms'"
DROP = 'drop table if exists "{name}"'
INTERNAL = "admission"
"""What serves nobody but Penstock is not written to files."""
AGAIN = 30.0
"""Seconds until a partition is tried again that somebody was reading."""
FORGET = """
delete from {table} where {key} in (
    select {columns} from {table} where {at} < now() - make_interval(days => $1) order by {at} limit 5000)
"""
OLD_ROWS = """
select *, ctid::text as place from {table} where {at} < now() - make_interval(days => $1) limit 500 for update skip locked
"""
FORGET_ROWS = "delete from {table} where ctid = any($1::text[]::tid[])"


def partitioned(settings: Settings) -> Mapping[str, tuple[str, int]]:
    """Of each table that has a partition a day: by which instant it goes, and the days for which it is kept."""
    return {
        "history": ("at", settings.history_retention_days),
        "log_line": ("at", settings.log_retention_days),
        "event": ("created_at", settings.event_retention_days),
        "archive": ("finished_at", settings.archive_retention_days),
        "fire": ("made_at", settings.fire_retention_days),  # a backfilled one was due long ago
        "admission": ("admitted_at", 1),  # as long as the longest window of a rate
    }


def batched(settings: Settings) -> tuple[tuple[str, str, str, int], ...]:
    """Table, instant and key of what is dropped by the row, and the days for which it is kept."""
    keys = settings.key_retention_days
    return (
        ("event_key", "created_at", "(tenant, trigger, source, message_id)", keys),
        ("idempotency", "created_at", "(tenant, key)", keys),
        # No longer than the archive: an enforcement says that its execution is somewhere.
        ("enforcement", "created_at", "(event_id, rule)", min(keys, settings.archive_retention_days)),
        ("workflow_command", "created_at", "(id)", settings.archive_retention_days),
    )


async def turn(parts: Parts, session: Session) -> bool | float:
    settings = parts.settings
    held = False
    more = False
    for parent, (at, days) in partitioned(settings).items():
        for row in await session.fetch(OLD, parent, days):
            held = not await drop(session, row[0], settings) or held
        more = await forget(session, f"{parent}_default", at, days, settings) or more
    for table, at, key, days in batched(settings):
        statement = FORGET.format(table=table, at=at, key=key, columns=key.strip("()"))
        async with session.transaction() as tx:
            more = (await tx.execute(statement, days)).endswith(" 5000") or more
    more = (
        await forget(session, "dead_letter", "last_at", settings.dead_letter_retention_days, settings) or more
    )
    return True if more else AGAIN if held else False


async def drop(session: Session, name: str, settings: Settings) -> bool:
    """Drop a partition, in a transaction of its own. False if somebody reads its table just now."""
    if settings.export_folder is not None and not name.startswith(INTERNAL):
        try:
            file = await archive_export.partition(
                session, name, settings.export_folder, settings.export_format
            )
        except asyncpg.UndefinedTableError:
            return True  # another replica was quicker
        log.info("retention.exported", partition=name, file=str(file))
    try:
        async with session.transaction() as tx:
            await tx.fetch(ALONE)
            await tx.execute(PATIENCE)
            await tx.execute(DROP.format(name=name))
    except asyncpg.LockNotAvailableError:
        return False
    log.info("retention.dropped", partition=name)
    return True


async def forget(session: Session, table: str, at: str, days: int, settings: Settings) -> bool:
    """Drop old rows one by one: dead letters, and what no day's partition was there for. Says whether there may be more."""
    async with session.transaction() as tx:
        old = await tx.fetch(OLD_ROWS.format(table=table, at=at), days)
        if old and settings.export_folder is not None and not table.startswith(INTERNAL):
            columns = [(row["name"], row["type"]) for row in await tx.fetch(archive_export.COLUMNS, table)]
            await asyncio.to_thread(
                archive_export.rows, old, table, columns, settings.export_folder, settings.export_format
            )
        if old:
            await tx.fetch(FORGET_ROWS.format(table=table), [row["place"] for row in old])
    return len(old) == 500


LOOP = Loop("retention", lambda settings: 3600.0, turn)
