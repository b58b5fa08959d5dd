"""The deletion of rows past their retention, in tables without daily partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.settings import Settings
from penstock.store.access import webhook_refusals
from penstock.store.session.database import Transaction

PARTITIONED = {
    "history": "at",
    "log_line": "at",
    "event": "created_at",
    "archive": "finished_at",
    "archived_label": "finished_at",
    "fire": "made_at",  # a fire of a backfill was due long ago
    "admission": "admitted_at",
}
"""The tables with daily partitions, and the column that decides to which day a row belongs."""
KEYS = {
    "event_key": ("created_at", ("tenant", "trigger", "source", "message_id")),
    "event_trace": ("created_at", ("event_id",)),
    "idempotency": ("created_at", ("tenant", "key")),
    "enforcement": ("created_at", ("event_id", "rule")),
    "early_outcome": ("created_at", ("tenant", "name")),
    "burst": ("closed_at", ("id",)),
    "burst_event": ("at", ("event_id", "rule")),
    "chain": ("created_at", ("id",)),
    "chain_step": ("created_at", ("id",)),
    "breaker_attempt": ("ended_at", ("limit_id", "group_value", "ended_at", "execution_id", "attempt")),
    "effect": ("created_at", ("parent", "id")),
    "workflow_command": ("created_at", ("id",)),
    "awaited": ("at", ("execution_id", "watcher")),
    "untraced": ("at", ("execution_id",)),
    "joined_start": ("at", ("id",)),
    "webhook_refusal": ("hour", ("webhook", "reason", "hour")),
}
"""Tables without partitions: the column from which the age of a row is counted, and the columns of its key."""
INSTANTS = {**{f"{table}_default": at for table, at in PARTITIONED.items()}, "dead_letter": "last_at"}
"""Tables with rows that may be exported before they are deleted: dead letters, and the default partitions. The age of
a row is counted from this column."""


def enforcement_days(settings: Settings) -> int:
    """Return the days for which enforcements are kept. Enforcements are kept no longer than the archive, since
    invariant I7 requires that the execution of an enforcement exists."""
    return min(settings.key_retention_days, settings.archive_retention_days)


def partitioned(settings: Settings) -> Mapping[str, int]:
    """Return the retention in days of each table with daily partitions."""
    return {
        "history": settings.history_retention_days,
        "log_line": settings.log_retention_days,
        "event": settings.event_retention_days,
        "archive": settings.archive_retention_days,
        "archived_label": settings.archive_retention_days,
        "fire": settings.fire_retention_days,
        "admission": 1,  # as long as the longest window of a rate
    }


def keyed(settings: Settings) -> Mapping[str, int]:
    """Return the retention in days of the tables in `KEYS`."""
    keys = settings.key_retention_days
    return {
        "event_key": keys,
        "event_trace": settings.event_retention_days,
        "idempotency": keys,
        "enforcement": enforcement_days(settings),
        "early_outcome": 1,
        "burst": enforcement_days(settings),
        "breaker_attempt": settings.archive_retention_days,
        "burst_event": enforcement_days(settings),
        "chain": settings.archive_retention_days,
        "chain_step": settings.archive_retention_days,
        "effect": settings.archive_retention_days,
        "workflow_command": settings.archive_retention_days,
        "awaited": 1,  # rows of processes that died; a process that still waits writes its rows again earlier
        "joined_start": 1,  # a client sends a start again within half a minute
        "webhook_refusal": webhook_refusals.KEPT_DAYS,
        "untraced": 1,  # rows of installations without an executor that traces
    }


AWAITED_EVENT = """exists (select from unmatched u where u.event_id = {id})
        or exists (select from burst_event b where b.event_id = {id} and b.burst is null)"""
OPEN_STEP = f"exists (select from execution e where e.id = s.id) or {AWAITED_EVENT.format(id='s.id')}"
NEEDED = {
    "event_key": "exists (select from unmatched u where u.event_id = d.event_id)",
    "event_trace": AWAITED_EVENT.format(id="d.event_id"),
    "idempotency": "exists (select from execution e where e.id = d.execution_id)",
    "burst_event": "d.burst is null",
    "chain": f"d.id in (select unnest(s.chains) from chain_step s where {OPEN_STEP})",
    "chain_step": OPEN_STEP.replace("s.id", "d.id"),
    "effect": "exists (select from execution e where e.id = d.parent)",
    "workflow_command": "exists (select from execution e where e.id = d.execution_id)",
}
"""The conditions under which stored work still needs an old row `d` of a table in `KEYS`. The work is an execution that is not
archived yet, an event that no rule was matched with, or an event whose burst is open. A chain is needed for any of its steps."""
BATCH = 5000
DELETE_KEYS = """
delete from {table} where ({columns}) in (
    select {columns} from {table} d where {at} < now() - make_interval(days => $1) and not ({needed})
    order by {at} limit $2)
"""


async def delete_old_keys(tx: Transaction, table: str, days: int) -> bool:
    """Delete a batch of rows of a table in `KEYS` that are older than `days` and that no stored work needs. Return True if
    more may exist."""
    at, key = KEYS[table]
    statement = DELETE_KEYS.format(
        table=table, at=at, columns=", ".join(key), needed=NEEDED.get(table, "false")
    )
    return (await tx.execute(statement, days, BATCH)).endswith(f" {BATCH}")


DELETE_START_BURSTS = """
delete from start_burst where (namespace_id, key) in (
    select namespace_id, key from start_burst
    where first_at < now() - make_interval(days => $1) and closes_at < now() - interval '1 hour' order by first_at limit $2)
"""


async def delete_old_start_bursts(tx: Transaction, days: int) -> bool:
    """Delete a batch of closed bursts of starts that began more than `days` ago. Return True if more may exist."""
    return (await tx.execute(DELETE_START_BURSTS, days, BATCH)).endswith(f" {BATCH}")


DELETE_BUDGETS = """
with old as (
    select distinct b.owner from budget b
    where b.created_at < now() - make_interval(days => $1) and not exists (
        select from budget_tree t join execution e on e.id = t.root where t.owner = b.owner)
    limit $2
), entries as (
    delete from budget_entry using old where budget_entry.owner = old.owner
), trees as (
    delete from budget_tree using old where budget_tree.owner = old.owner
)
delete from budget using old where budget.owner = old.owner
"""


async def delete_old_budgets(tx: Transaction, days: int) -> bool:
    """Delete a batch of budgets older than `days` with their ledgers, unless one of their trees is not archived yet. Return True
    if any was deleted."""
    return not (await tx.execute(DELETE_BUDGETS, days, BATCH // 10)).endswith(" 0")


@dataclass(slots=True)
class OldRows:
    """Rows that this transaction has locked, with columns in the order of the table, and the place (ctid) of each."""

    rows: list[tuple[Any, ...]]
    places: list[str]


OLD_ROWS = """
select *, ctid::text from {table} where {at} < now() - make_interval(days => $1) {unneeded} limit $2 for update skip locked
"""
UNNEEDED = """and ({id} is null or {id} not in (
    select n.id from needed_rows('{parent}', '-infinity', now() - make_interval(days => $1)) n where n.id is not null))"""
IDS = {
    "event_default": "id",
    "archive_default": "id",
    "archived_label_default": "id",
    "fire_default": "execution_id",
}
"""The default partitions with rows that stored work may need, and the column by which it refers to them."""
HISTORY = "history_default"
OLD_HISTORY = "select * from old_history($1, $2)"
"""No service may change the history, and so functions of the owner lock and delete its old rows."""


async def hold_old_rows(tx: Transaction, table: str, days: int, limit: int) -> OldRows:
    """Lock at most `limit` rows of a table in `INSTANTS` that are older than `days` and that no stored work needs. Locked rows
    are skipped."""
    unneeded = UNNEEDED.format(id=IDS[table], parent=table.removesuffix("_default")) if table in IDS else ""
    sql = (
        OLD_HISTORY
        if table == HISTORY
        else OLD_ROWS.format(table=table, at=INSTANTS[table], unneeded=unneeded)
    )
    rows = await tx.fetch(sql, days, limit)
    return OldRows([tuple(row)[:-1] for row in rows], [row[-1] for row in rows])


DELETE_ROWS = "delete from {table} where ctid = any($1::text[]::tid[])"
DELETE_HISTORY = "select delete_old_history($1)"


async def delete_rows(tx: Transaction, table: str, places: Sequence[str]) -> None:
    """Delete rows that this transaction has locked, by their places."""
    await tx.fetch(DELETE_HISTORY if table == HISTORY else DELETE_ROWS.format(table=table), list(places))
