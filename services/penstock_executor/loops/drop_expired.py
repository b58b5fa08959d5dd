"""The loop that drops rows past their retention: whole partitions, and keys and dead letters in batches. Rows that
are to be kept elsewhere are exported to files first."""

from __future__ import annotations

import asyncio
import random
from dataclasses import astuple
from datetime import UTC, datetime, timedelta

import structlog

from penstock.errors import PartitionDropped
from penstock.service.assembly import Parts
from penstock.settings import Settings
from penstock.store.access import audit
from penstock.store.schema import partitions
from penstock.store.session import clock
from penstock.store.session.database import Session
from penstock.store.upkeep import retention
from penstock_executor import expired_rows_export, installation_metrics
from penstock_executor.loop_runner import Loop

log = structlog.get_logger()

INTERNAL = ("admission", "archived_label")
"""The tables that serve Penstock only, and are not exported."""
AGAIN = 30.0
"""Seconds until a partition is tried again that another transaction was reading."""
TRIES = 10
"""Times that a turn of the loop tries to lock a table. Each try waits a moment only, since other sessions wait behind
it."""
PAUSE = 0.2
"""The mean pause in seconds between two tries."""
MOST_AHEAD = timedelta(days=1)
"""The most by which the database's clock may be ahead of this machine's while rows are dropped."""
BATCH = 500
"""Rows of one transaction, in tables in which rows are deleted one by one and may be exported."""


async def turn(parts: Parts, session: Session) -> bool | float:
    settings = parts.settings
    # A dropped day does not come back. If the database's clock leaps years ahead, every day seems to be old.
    ahead = await clock.now(session) - datetime.now(UTC)
    if ahead > MOST_AHEAD:
        log.error("drop_expired.clocks_differ", seconds=ahead.total_seconds())
        return False
    is_used = False
    has_more = False
    # These rows go before the partitions of the archive: an enforcement needs its archived execution (I7).
    for table, days in retention.keyed(settings).items():
        async with session.transaction() as tx:
            has_more = await retention.delete_old_keys(tx, table, days) or has_more
    held: dict[tuple[str, ...], float] = {}
    for table, days in retention.partitioned(settings).items():
        for name in await partitions.old(session, table, days):
            if needs := await partitions.needs(session, name):
                for need in needs:
                    place = (table, need.needed_by)
                    held[place] = held.get(place, 0) + need.rows
                reason = ", ".join(f"{need.rows} rows for {need.needed_by}" for need in needs)
                log.warning("drop_expired.held", partition=name, reason=reason)
            else:
                is_used = not await drop(session, name, settings) or is_used
        has_more = await drop_rows(session, f"{table}_default", days, settings) or has_more
    installation_metrics.shown(parts).held_rows = held
    has_more = (
        await drop_rows(session, "dead_letter", settings.dead_letter_retention_days, settings) or has_more
    )
    async with session.transaction() as tx:
        has_more = await retention.delete_old_start_bursts(tx, settings.key_retention_days) or has_more
    async with session.transaction() as tx:
        has_more = await retention.delete_old_budgets(tx, settings.archive_retention_days) or has_more
    has_more = await drop_audit(session, settings) or has_more
    return True if has_more else AGAIN if is_used else False


async def drop(session: Session, name: str, settings: Settings) -> bool:
    """Drop a partition, after its export. Return False if another transaction is using its table."""
    if settings.export_folder is not None and not name.startswith(INTERNAL):
        try:
            file = await expired_rows_export.partition(
                session, name, settings.export_folder, settings.export_format
            )
        except PartitionDropped:
            return True  # another replica has dropped it
        log.info("drop_expired.exported", partition=name, file=str(file))
    for _ in range(TRIES):
        if await partitions.drop(session, name):
            log.info("drop_expired.dropped", partition=name)
            return True
        await asyncio.sleep(PAUSE * random.uniform(0.5, 1.5))
    return False


async def drop_rows(session: Session, table: str, days: int, settings: Settings) -> bool:
    """Delete a batch of old rows: dead letters, or rows of default partitions. Return True if more may exist."""
    async with session.transaction() as tx:
        old = await retention.hold_old_rows(tx, table, days, BATCH)
        if old.rows and settings.export_folder is not None and not table.startswith(INTERNAL):
            columns = await partitions.columns(tx, table)
            await asyncio.to_thread(
                expired_rows_export.rows,
                old.rows,
                table,
                columns,
                settings.export_folder,
                settings.export_format,
            )
        if old.rows:
            await retention.delete_rows(tx, table, old.places)
    return len(old.rows) == BATCH


async def drop_audit(session: Session, settings: Settings) -> bool:
    """Delete a batch of old rows of the audit. Return True if more may exist."""
    async with session.transaction() as tx:
        old = await audit.drop(tx, settings.archive_retention_days, BATCH)
        if old and settings.export_folder is not None:
            columns = await partitions.columns(tx, "audit")
            await asyncio.to_thread(
                expired_rows_export.rows,
                [tuple(v.hex() if isinstance(v, bytes) else v for v in astuple(row)) for row in old],
                "audit",
                columns,
                settings.export_folder,
                settings.export_format,
            )
    if old:
        log.info("drop_expired.audit_dropped", rows=len(old))
    return len(old) == BATCH


# With `opens=False` the session reads encrypted values as they are stored, so the exported files hold none of them in clear.
LOOP = Loop("drop_expired", lambda settings: 3600.0, turn, opens=False)
