"""execution.completed -> its workflow advances; and the actions that were to follow it start, each once.

Slots were released and the next waiters promoted in the transaction that ended the execution.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import orjson
import structlog

from penstock.engine.decision import Change
from penstock.ids import new_id
from penstock.messaging.consumer import Batch
from penstock.moves import COMPLETED
from penstock.store import catalog, executions, namespaces
from penstock.store.database import Row, Transaction
from penstock_executor.workflow.lock import Run, decide, opened
from penstock_executor.workflow.write import carry_out

log = structlog.get_logger()

FOLLOWED = """
select e.id, e.status, n.name as namespace, d.body -> 'on_success' as on_success, d.body -> 'on_failure' as on_failure,
    r.result::text as result, r.error::text as error
from execution e
join namespace n on n.id = e.namespace_id
join definition d on d.id = e.definition_id
left join result r on r.execution_id = e.id
where e.id = any($1::uuid[])
"""

ENDED = "select * from open_parents($1::uuid[])"


async def handle(batch: Batch, tx: Transaction) -> None:
    rows = await tx.fetch(ENDED, batch.ids)
    runs = await opened(tx, [row for row in rows if row["execution_id"] is not None])
    if runs:
        await advance(tx, runs, [row for row in rows if row["parent"] is not None])
    followed = [row["id"] for row in rows if row["followed"]]
    if followed:
        await call_back(tx, await tx.fetch(FOLLOWED, followed))


async def advance(tx: Transaction, runs: Sequence[Run], children: Sequence[Row]) -> None:
    """Advance these workflows by what became of their children, each once."""
    by_id = {run.id: run for run in runs}
    changes: dict[UUID, list[Change]] = {}
    for row in children:
        run = by_id.get(row["parent"])
        if run is not None:
            item = None if row["item"] < 0 else row["item"]
            changes.setdefault(run.id, []).append(Change(run.plan.index(row["task"]), row["status"], item))
    await carry_out(tx, await decide(tx, runs, changes))


async def call_back(tx: Transaction, ended: Sequence[Row]) -> None:
    """Start what follows these, which nobody was told of before."""
    wanted = [(row, ref) for row in ended for ref in _refs(row)]
    if not wanted:
        return
    refs = sorted({ref for _, ref in wanted})
    known = {row.ref: row for row in await catalog.current(tx, ["action", "workflow"], refs) if row.enabled}
    for row, ref in wanted:
        if ref not in known:
            log.warning(
                "callback.not_started", execution=str(row["id"]), action=ref, why="disabled or not registered"
            )
    wanted = [(row, ref) for row, ref in wanted if ref in known]
    if not wanted:
        return
    names = {namespaces.name(_tenant(row), ref): ref for row, ref in wanted}
    spaces = await namespaces.places(tx, names)
    await executions.submit(
        tx,
        [
            executions.Submission(
                id=new_id(),
                namespace=spaces[namespaces.name(_tenant(row), ref)],
                definition=known[ref].definition_id,
                params=_params(row),
                tenant=_tenant(row),
                origin=orjson.dumps({"callback_of": str(row["id"])}).decode(),
            )
            for row, ref in wanted
        ],
    )


def _refs(row: Row) -> list[str]:
    column = row["on_success"] if row["status"] == COMPLETED else row["on_failure"]
    return list(orjson.loads(column)) if column else []


def _tenant(row: Row) -> str:
    return str(row["namespace"]).split("::", 1)[0]


def _params(row: Row) -> str:
    """What a callback is told: `execution`, `status`, `result`, `error`."""
    told: dict[str, Any] = {
        "execution": str(row["id"]),
        "status": row["status"],
        "result": orjson.loads(row["result"]) if row["result"] else None,
        "error": orjson.loads(row["error"]) if row["error"] else None,
    }
    return orjson.dumps(told).decode()
