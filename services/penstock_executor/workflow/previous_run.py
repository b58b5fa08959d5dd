"""What a re-run keeps of the run before: read from where that is, in the hot tables or the archive, and the results
copied to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from penstock.engine.kept import Kept
from penstock.engine.plan import Plan
from penstock.engine.rerun import from_failed, from_task
from penstock.engine.state import Record
from penstock.engine.state_json import read_record
from penstock.errors import NotFound
from penstock.store.database import Transaction

RECORDS = """
select task, record::text as record from workflow_task where execution_id = $1
union all
select x.key::integer, x.value::text from archive a cross join jsonb_each(a.state -> 'tasks') x where a.id = $1
"""
COMPLETED_ITEMS = """
select task, item from execution where parent = $1 and item >= 0 and status = 'completed' and task = any($2::text[])
union all
select task, item from archive
where parent = $1 and root = (select root from archive where id = $1 limit 1)
    and item >= 0 and status = 'completed' and task = any($2::text[])
"""
KEPT_ITEMS = """
select task, item from workflow_kept where execution_id = $1 and item >= 0 and task = any($2::integer[]) and error is null
union all
select k.task, k.item
from archive a cross join jsonb_to_recordset(a.state -> 'kept') as k (task integer, item integer, error jsonb)
where a.id = $1 and k.item >= 0 and k.task = any($2::integer[]) and k.error is null
"""
KEEP = "select keep_results($1, $2, $3::integer[], $4::text[])"


async def keep(tx: Transaction, id: UUID, plan: Plan, rerun: Mapping[str, Any]) -> dict[int, Kept]:
    """What the re-run `id` keeps. `rerun` says of which run, and whether `from_failed` or `from_task`; with neither
    of them nothing is kept. Raises NotFound if the run before is gone."""
    before = UUID(rerun["rerun_of"])
    if not rerun.get("from_failed") and not rerun.get("from_task"):
        return {}
    records = {row["task"]: read_record(row["record"]) for row in await tx.fetch(RECORDS, before)}
    if not records:
        raise NotFound(f"nothing is known any more of run {before}", hint="Run it again as a whole.")
    if rerun.get("from_task"):
        kept = from_task(plan, records, plan.index(rerun["from_task"]))
    else:
        kept = from_failed(plan, records, await _completed(tx, before, plan, records))
    copied = [task for task, one in kept.items() if not one.given]
    if copied:
        await tx.fetch(KEEP, id, before, copied, [plan.graph[task].name for task in copied])
    return kept


async def _completed(
    tx: Transaction, before: UUID, plan: Plan, records: Mapping[int, Record]
) -> dict[int, bytes]:
    """Of the fan-outs that did not complete, a bit for each item that did."""
    fans = {
        task: record.fan for task, record in records.items() if record.fan and record.status != "completed"
    }
    if not fans:
        return {}
    names = [plan.graph[task].name for task in fans]
    bits = {task: bytearray((fan.total + 7) // 8) for task, fan in fans.items()}
    done = [(plan.index(row["task"]), row["item"]) for row in await tx.fetch(COMPLETED_ITEMS, before, names)]
    done += [(row["task"], row["item"]) for row in await tx.fetch(KEPT_ITEMS, before, list(fans))]
    for task, item in done:
        bits[task][item >> 3] |= 1 << (item & 7)
    return {task: bytes(found) for task, found in bits.items()}
