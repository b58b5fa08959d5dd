"""The loop that drops rows past their retention: whole partitions, and keys and dead letters in batches. Rows that
are to be kept elsewhere are exported to files first."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import astuple

import structlog

from penstock.errors import PartitionDropped
from penstock.service.assembly import Parts
from penstock.settings import Settings
from penstock.store.access import audit
from penstock.store.schema import partitions
from penstock.store.session.database import Session
from penstock.store.upkeep import retention
from penstock_executor import archive_export
from penstock_executor.loop_runner import Loop

log = structlog.get_logger()

INTERNAL = ("admission", "archived_label")
"""The tables that serve Penstock only, and are not exported."""
AGAIN = 30.0
"""Seconds until a partition is tried again that another transaction was reading."""
BATCH = 500
"""Rows of one transaction, in tables in which rows are deleted one by one and may be exported."""


def partitioned(settings: Settings) -> Mapping[str, int]:
    """Return the retention in days of each table with daily partitions."""
    return {
        "history": settings.history_retention_days,
        "log_line": settings.log_retention_days,
        "event": settings.event_retention_days,
        "archive": settings.archive_retention_days,
        "archived_label": settings.archive_retention_days,
        "fire": settings.fire_retention_days,
        "admission": 1,  # the longest window of a rate is a day
    }


def keyed(settings: Settings) -> Mapping[str, int]:
    """Return the retention in days of the tables in `retention.KEYS`."""
    keys = settings.key_retention_days
    return {
        "event_key": keys,
        "event_trace": settings.event_retention_days,
        "idempotency": keys,
        "enforcement": retention.enforcement_days(settings),
        "early_outcome": 1,
        "burst": retention.enforcement_days(settings),
        "breaker_attempt": settings.archive_retention_days,
        "burst_event": retention.enforcement_days(settings),
        "chain": settings.archive_retention_days,
        "chain_step": settings.archive_retention_days,
        "effect": settings.archive_retention_days,
        "workflow_command": settings.archive_retention_days,
        # Processes that died left these rows; a process that still waits writes its rows again earlier.
        "awaited": 1,
        "joined_start": 1,  # a client sends a start again within half a minute
        "untraced": 1,  # rows of installations without an executor that traces
    }


async def turn(parts: Parts, session: Session) -> bool | float:
    settings = parts.settings
    held = False
    has_more = False
    for table, days in partitioned(settings).items():
        for name in await partitions.old(session, table, days):
            held = not await drop(session, name, settings) or held
        has_more = await drop_rows(session, f"{table}_default", days, settings) or has_more
    for table, days in keyed(settings).items():
        async with session.transaction() as tx:
            has_more = await retention.delete_old_keys(tx, table, days) or has_more
    has_more = (
        await drop_rows(session, "dead_letter", settings.dead_letter_retention_days, settings) or has_more
    )
    async with session.transaction() as tx:
        has_more = await retention.delete_old_start_bursts(tx, settings.key_retention_days) or has_more
    async with session.transaction() as tx:
        has_more = await retention.delete_old_budgets(tx, settings.archive_retention_days) or has_more
    has_more = await drop_audit(session, settings) or has_more
    return True if has_more else AGAIN if held else False


async def drop(session: Session, name: str, settings: Settings) -> bool:
    """Drop a partition, after its export. Return False if another transaction is reading its table."""
    if settings.export_folder is not None and not name.startswith(INTERNAL):
        try:
            file = await archive_export.partition(
                session, name, settings.export_folder, settings.export_format
            )
        except PartitionDropped:
            return True  # another replica has dropped it
        log.info("drop_expired.exported", partition=name, file=str(file))
    if not await partitions.drop(session, name):
        return False
    log.info("drop_expired.dropped", partition=name)
    return True


async def drop_rows(session: Session, table: str, days: int, settings: Settings) -> bool:
    """Delete a batch of old rows: dead letters, or rows of default partitions. Return True if more may exist."""
    async with session.transaction() as tx:
        old = await retention.hold_old_rows(tx, table, days, BATCH)
        if old.rows and settings.export_folder is not None and not table.startswith(INTERNAL):
            columns = await partitions.columns(tx, table)
            await asyncio.to_thread(
                archive_export.rows,
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
                archive_export.rows,
                [tuple(v.hex() if isinstance(v, bytes) else v for v in astuple(row)) for row in old],
                "audit",
                columns,
                settings.export_folder,
                settings.export_format,
            )
    if old:
        log.info("drop_expired.audit_dropped", rows=len(old))
    return len(old) == BATCH


# Without `opens`, exported files contain encrypted values as the database stores them.
LOOP = Loop("drop_expired", lambda settings: 3600.0, turn, opens=False)
