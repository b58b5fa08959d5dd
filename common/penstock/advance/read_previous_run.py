"""The results that a re-run keeps from the run before: they are read, and copied to the re-run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from penstock.engine import KeptTask, Plan, TaskState, rerun
from penstock.errors import NotFound
from penstock.language.moves import COMPLETED, SKIPPED
from penstock.store.session.database import Transaction
from penstock.store.workflows import kept_results
from penstock.store.workflows.kept_results import StoredEnds

SHOWN = 5
"""The maximum number of tasks that an error names."""


async def keep_results(
    tx: Transaction, id: UUID, plan: Plan, origin: Mapping[str, Any]
) -> dict[int, KeptTask]:
    """Copy the results that the re-run `id` keeps, and return the kept tasks. `origin` names the run before, and
    `from_failed` or `from_task`; with neither of them nothing is kept. Raises NotFound if the run before is gone."""
    previous_run = UUID(origin["rerun_of"])
    _, kept_tasks = await read_kept_tasks(
        tx, previous_run, plan, from_failed=bool(origin.get("from_failed")), from_task=origin.get("from_task")
    )
    copied = [task for task, kept_task in kept_tasks.items() if not kept_task.given]
    if copied:
        await kept_results.copy(tx, id, previous_run, copied, [plan.graph[task].name for task in copied])
    return kept_tasks


async def read_kept_tasks(
    tx: Transaction, previous_run: UUID, plan: Plan, *, from_failed: bool, from_task: str | None
) -> tuple[dict[int, TaskState], dict[int, KeptTask]]:
    """Return the task states of a run that has ended, and the tasks that a re-run keeps. Both are empty for a re-run that is
    neither `from_failed` nor `from_task`. Raises NotFound if nothing is stored of the run, or if results of kept tasks
    are not stored any more."""
    if not from_failed and not from_task:
        return {}, {}
    tasks = await kept_results.read_tasks(tx, previous_run)
    if from_task:
        kept_tasks = rerun.from_task(plan, tasks, plan.index(from_task))
    else:
        completed = await _read_completed_items(tx, previous_run, plan, tasks)
        kept_tasks = rerun.from_failed(plan, tasks, completed)
    await _check_stored(tx, previous_run, plan, tasks, kept_tasks)
    return tasks, kept_tasks


async def _check_stored(
    tx: Transaction,
    previous_run: UUID,
    plan: Plan,
    tasks: Mapping[int, TaskState],
    kept_tasks: Mapping[int, KeptTask],
) -> None:
    """Raise NotFound if the results of a kept task are not stored any more. The tasks of a long run end days before the
    run, so the retention deletes them earlier."""
    executed = [
        task for task, kept_task in kept_tasks.items() if not kept_task.given and kept_task.status != SKIPPED
    ]
    names = [plan.graph[task].name for task in executed]
    stored = await kept_results.read_stored_ends(tx, previous_run, executed, names) if executed else {}
    missing = [task for task in executed if not _are_stored(tasks[task], stored.get(task))]
    if not missing:
        return
    first = plan.graph[missing[0]].name
    hint = "Run it again as a whole."
    if rerun.from_task(plan, tasks, missing[0]).keys().isdisjoint(missing):
        hint = f"Run it again as a whole, or from {first}: penstock rerun {previous_run} --from {first}"
    listed = ", ".join(plan.graph[task].name for task in missing[:SHOWN])
    suffix = f", and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
    raise NotFound(
        f"the re-run would keep results of {previous_run} that are not stored any more: those of {listed}{suffix}",
        hint=hint,
    )


def _are_stored(task_state: TaskState, stored: StoredEnds | None) -> bool:
    """Return whether all ends of a task are stored that a re-run would keep."""
    if task_state.fan is not None:
        return task_state.fan.ended - task_state.fan.failed <= (0 if stored is None else stored.good)
    return stored is not None and stored.ends > 0


async def _read_completed_items(
    tx: Transaction, previous_run: UUID, plan: Plan, tasks: Mapping[int, TaskState]
) -> dict[int, bytes]:
    """Return, for each fan-out that did not complete, a bitmap of its completed items."""
    fans = {task: state.fan for task, state in tasks.items() if state.fan and state.status != COMPLETED}
    if not fans:
        return {}
    names = [plan.graph[task].name for task in fans]
    bits = {task: bytearray((fan.total + 7) // 8) for task, fan in fans.items()}
    completed = [
        (plan.index(name), item)
        for name, item in await kept_results.read_completed_items(tx, previous_run, names)
    ]
    completed += await kept_results.read_kept_items(tx, previous_run, list(fans))
    for task, item in completed:
        bits[task][item >> 3] |= 1 << (item & 7)
    return {task: bytes(bitmap) for task, bitmap in bits.items()}
