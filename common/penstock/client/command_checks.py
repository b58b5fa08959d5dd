"""The checks of a command before it is stored, so that a command that cannot be followed is refused at once. The run
checks the command again when it follows it, under its lock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from penstock.errors import Conflict, NotFound
from penstock.language.moves import COMPLETED, FINAL, RUNNING
from penstock.language.terms.options import did_you_mean
from penstock.language.workflows.graph import Graph
from penstock.operate.workflow_tree import graph_of
from penstock.store.definitions import catalog
from penstock.store.executions import executions
from penstock.store.executions.executions import Execution
from penstock.store.session.database import Transaction
from penstock.store.workflows import workflow_runs

MOST_NAMES = 10
"""The maximum number of tasks that a notice names."""


async def check_task(tx: Transaction, id: UUID, kind: str, task: str) -> str | None:
    """Check `skip` or `set_result` of a task. Return a notice if tasks before it have not ended, else None. Raises
    NotFound if the workflow has no such task, and Conflict if the task or the run has ended."""
    row = await executions.get(tx, id)
    body = (await catalog.bodies(tx, [row.definition_id])).get(row.definition_id, {})
    graph = graph_of(body or None)
    if graph is None or row.status != RUNNING:
        raise _refusal(row, kind, task, body, graph)
    if task not in graph.index:
        raise unknown_task(row.action, task, graph)
    node = graph[graph.index[task]]
    tasks = await workflow_runs.tasks(tx, id)
    status = {index: stored.status for index, stored in tasks.items() if stored.status in FINAL}
    if node.index in status:
        raise Conflict(
            f"`{task}` has ended already, as {status[node.index]}",
            hint=f"When the run has ended, run it again from this task: penstock rerun {id} --from {task}",
        )
    return _notice(task, [graph[source].name for source in node.sources if source not in status])


def unknown_task(ref: str, task: str, graph: Graph) -> NotFound:
    """Return the error for a task that a workflow does not have."""
    return NotFound(f"{ref} has no task {task!r}", hint=did_you_mean(task, graph.index))


def _notice(task: str, open_before: list[str]) -> str | None:
    if not open_before:
        return None
    names = ", ".join(f"`{name}`" for name in open_before[:MOST_NAMES])
    unnamed = f" and {len(open_before) - MOST_NAMES:,} more" if len(open_before) > MOST_NAMES else ""
    return (
        f"`{task}` comes after tasks that have not ended: {names}{unnamed}. It ends at once, and does not wait for "
        f"them. They go on, and their results change nothing for `{task}`."
    )


async def refusal(tx: Transaction, id: UUID, kind: str, task: str | None) -> Exception:
    """Return the error for a command to an execution that is not a running workflow: NotFound or Conflict."""
    rows = await executions.find(tx, [id])
    if not rows:
        return executions.missing(id)
    body = (await catalog.bodies(tx, [rows[0].definition_id])).get(rows[0].definition_id, {})
    return _refusal(rows[0], kind, task, body, graph_of(body or None))


def _refusal(
    row: Execution, kind: str, task: str | None, body: Mapping[str, Any], graph: Graph | None
) -> Conflict:
    word = kind.replace("_", "-")
    if row.finished_at is not None:
        return Conflict(f"{row.id} has ended: it is {row.status}", hint=_rerun_hint(row, task, body, graph))
    if graph is not None:
        return Conflict(
            f"{row.id} does not run: it is {row.status}",
            hint=f"`penstock why {row.id}` says what it waits for. Send the command when it runs.",
        )
    if "durable" in body:
        return Conflict(
            f"{row.id} is a durable function, and only a workflow can be paused or resumed",
            hint=f"`penstock why {row.id}` says what it waits for, and `penstock cancel {row.id}` ends it.",
        )
    hint = f"`penstock show {row.id}` shows its kind, and `penstock cancel {row.id}` ends it."
    if row.parent is not None and row.task is not None:
        of_task = f" {row.task}" if task is not None else ""
        hint = f"Name the run that contains it: penstock {word} {row.parent}{of_task}"
    return Conflict(f"{row.id} is neither a workflow nor a durable function", hint=hint)


def _rerun_hint(row: Execution, task: str | None, body: Mapping[str, Any], graph: Graph | None) -> str:
    """Return the commands that run an ended execution again."""
    ways = []
    if graph is not None and task in graph.index:
        ways.append(f"from this task: penstock rerun {row.id} --from {task}")
    if row.status != COMPLETED and (graph is not None or "durable" in body):
        ways.append(f"from the failed tasks: penstock rerun {row.id} --from-failed")
    ways = ways or [f"with: penstock rerun {row.id}"]
    return f"Run it again {', or '.join(ways)}"
