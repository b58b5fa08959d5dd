"""Which tasks a re-run keeps of the run before."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.engine.kept import Kept
from penstock.engine.plan import Plan
from penstock.engine.state import Record
from penstock.moves import COMPLETED, SKIPPED

Records = Mapping[int, Record]


def from_failed(plan: Plan, records: Records, completed: Mapping[int, bytes]) -> dict[int, Kept]:
    """Keep what completed, may fail, or failed and was handled. Of a fan-out that is run again, `completed`
    has a bit for each item that completed (by task)."""

    def stands(task: int, record: Record) -> bool:
        return record.status in (COMPLETED, SKIPPED) or record.handled or plan.graph[task].step.allow_failure

    return _kept(plan, records, stands, completed)


def from_task(plan: Plan, records: Records, task: int) -> dict[int, Kept]:
    """Keep what ended, but neither this task nor what comes after it."""
    return _kept(plan, records, lambda other, record: other != task, {})


def _kept(
    plan: Plan, records: Records, stands: Callable[[int, Record], bool], completed: Mapping[int, bytes]
) -> dict[int, Kept]:
    """In the workflow's order: a task is kept if it stands and everything before it will be as it was."""
    kept: dict[int, Kept] = {}
    same: set[int] = set()
    for node in plan.graph.nodes:
        record = records.get(node.index)
        if record is None or not record.final or not same.issuperset(node.sources):
            continue
        by_hand = record.given and not record.runs
        if record.status == SKIPPED and not record.runs and not by_hand:
            same.add(node.index)  # it will be skipped again, for the same reason
        elif stands(node.index, record):
            same.add(node.index)
            total = None if record.fan is None else record.fan.total
            kept[node.index] = Kept(
                record.status,
                total=total,
                given=record.given,
                by_hand=by_hand and record.status in (COMPLETED, SKIPPED),
                result=record.result,
                error=record.error,
            )
        elif record.fan is not None and node.index in completed:
            kept[node.index] = Kept(None, completed[node.index], digest=record.fan.digest)
    return kept
