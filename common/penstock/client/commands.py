"""The commands of operators to executions, stored with actor and reason: pause, resume, skip a task or set its result,
and re-run an ended execution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import orjson

from penstock import tracing
from penstock.advance.open_workflows import read_plans
from penstock.advance.read_previous_run import read_kept_tasks
from penstock.client import command_checks, durable_commands
from penstock.client.changed_parameters import ChangedParameters
from penstock.client.command_kinds import check_command
from penstock.client.step_names import recorded_step
from penstock.errors import Conflict, InvalidInput, NotFound
from penstock.language.moves import COMPLETED
from penstock.language.schemas import check_value
from penstock.language.terms.options import Wrong, did_you_mean
from penstock.language.terms.run_labels import check_labels
from penstock.language.terms.waits import WAITS
from penstock.store.definitions import catalog
from penstock.store.executions.executions import Execution
from penstock.store.session.database import Transaction
from penstock.store.workflows import workflow_commands
from penstock.tracing.spans import START, execution_span


async def command(
    tx: Transaction,
    id: UUID,
    kind: str,
    *,
    task: str | None,
    value: Any,
    by: str,
    reason: str | None,
    ahead: bool = False,
) -> str | None:
    """Store a command to a running workflow, which follows it under its lock. For a durable function, skip a step or
    set its result. `ahead`: the durable function may not have asked for the step yet. Return a notice if tasks before
    the task of the command have not ended, else None.

    Raises Conflict if the execution does not run, or if the task has ended. Raises InvalidInput for an unknown kind,
    for a missing task, and for an answer that the question of the task refuses. Raises NotFound for an unknown
    execution or task, and for a step that the function has not asked for, unless `ahead` is set.
    """
    check_command(kind)
    notice = None
    if kind in ("skip", "set_result"):
        if task is None:
            raise InvalidInput(
                "the command names no task", hint="Name the task, or the step of a durable function."
            )
        result = check_value(value, tx.settings.payload_cap, what="result").decode()
        if await durable_commands.give(tx, id, kind, task, result, by=by, reason=reason, ahead=ahead):
            return None
        notice = await command_checks.check_task(tx, id, kind, task)
        if kind == "set_result":
            await durable_commands.check_answer(tx, id, task, None, result)
    encoded = None if value is None else check_value(value, tx.settings.payload_cap, what="result").decode()
    if not await workflow_commands.command(tx, id, kind, task, encoded, by, reason):
        raise await command_checks.refusal(tx, id, kind, task)
    return notice


async def rerun(
    tx: Transaction,
    new: UUID,
    row: Execution,
    *,
    from_failed: bool,
    from_task: str | None,
    by: str,
    reason: str | None,
    changed: Mapping[str, Any] | None = None,
    unset: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
) -> None:
    """Run an execution again, under the id `new`. `changed` are parameters with other values, and `unset` are
    parameters to leave out. `labels` are added to those of the old start or rule. Raises NotFound if the workflow has
    no task or step `from_task`. Raises InvalidInput if the options contradict each other or do not fit the execution.
    Raises Conflict if it has not ended, or if a task that would be kept has read a changed parameter."""
    old = row.id
    if row.finished_at is None:
        raise Conflict(
            f"{old} has not ended: it is {row.status}",
            hint=f"End it first (`penstock cancel {old}`), or correct it while it runs (`penstock skip`, `set-result`).",
        )
    if row.action in WAITS:
        raise InvalidInput(
            "an inquiry or a wait for an event runs only in its workflow",
            hint=f"Re-run the workflow: penstock rerun {row.parent} --from {row.task}",
        )
    parameters = None
    if changed or unset:
        parameters = await ChangedParameters.read(tx, row, changed or {}, unset)
    if from_failed or from_task is not None:
        keeps_some = await _see_what_is_kept(tx, row, from_failed, from_task, parameters)
        from_failed = from_failed and keeps_some
    keeps = {"from_failed": from_failed, "from_task": from_task}
    value: dict[str, Any] = {name: setting for name, setting in keeps.items() if setting}
    if changed:
        value["changed"] = sorted(changed)
    if unset:
        value["unset"] = sorted(unset)
    added_labels = None if labels is None else await _check_labels(tx, row, labels)
    if added_labels:
        value["labels"] = added_labels
    origin = {"rerun_of": str(old), **value, "by": by, **({"reason": reason} if reason else {})}
    with tracing.producing(START, row.action, row.namespace.partition("::")[0]):
        is_there = await workflow_commands.rerun(
            tx,
            new,
            old,
            origin=orjson.dumps({**origin, **_traced(row)}).decode(),
            from_task=from_task,
            value=orjson.dumps({"as": str(new), **value}).decode(),
            by=by,
            reason=reason,
            params=None if parameters is None else parameters.stored,
            labels=orjson.dumps(added_labels).decode() if added_labels else None,
        )
    if is_there and (from_failed or from_task is not None):
        step = None if from_task is None else await recorded_step(tx, old, from_task)
        await durable_commands.keep(tx, new, old, step)
    if not is_there:
        raise NotFound(
            f"execution {old} is gone", hint="Ended executions are deleted when their retention is over."
        )


async def _check_labels(tx: Transaction, row: Execution, labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that a re-run adds. Raises InvalidInput, also for the name of a searchable parameter, and if the
    re-run would have more labels than a start."""
    try:
        added = check_labels(labels)
        searchable = (await catalog.bodies(tx, [row.definition_id]))[row.definition_id].get("searchable", [])
        for name in added:
            if name in searchable:
                raise InvalidInput(
                    f"the label {name} follows the parameter {name}, which is searchable",
                    hint=f"Change the parameter: --set {name}=VALUE",
                )
        old = orjson.loads(row.options or "{}").get("labels", {})
        check_labels({**{name: text for name, text in old.items() if name not in searchable}, **added})
    except Wrong as wrong:
        raise InvalidInput(f"labels {wrong}", hint=wrong.hint) from None
    return added


def _traced(old: Execution) -> dict[str, Any]:
    """Return the caller's trace for the new run, with a link to the old run's span if that was traced. Empty without a
    trace."""
    traced = tracing.current()
    if traced is None:
        return {}
    old_trace = old.trace
    links = [old_trace.carrier(execution_span(old.id))["traceparent"]] if old_trace is not None else []
    return {"trace": {**traced, "links": links}}


async def _see_what_is_kept(
    tx: Transaction,
    row: Execution,
    from_failed: bool,
    from_task: str | None,
    parameters: ChangedParameters | None,
) -> bool:
    """Return whether the re-run keeps tasks or steps of the old run. Raises an error if the request contradicts the
    execution."""
    if from_failed and from_task is not None:
        raise InvalidInput("`from_failed` and `from_task` are both given", hint="Choose one of the two.")
    if from_failed and row.status == COMPLETED:
        raise Conflict(
            "the execution has completed, so nothing has failed",
            hint="Run it again as a whole, or, if it is a workflow, from one of its tasks.",
        )
    body = (await catalog.bodies(tx, [row.definition_id]))[row.definition_id]
    if "durable" in body:
        if from_task is not None:
            await durable_commands.check_kept(tx, row.id, await recorded_step(tx, row.id, from_task))
        if parameters is not None:
            await parameters.check_kept_steps(tx)
        return True
    if body["kind"] != "workflow":
        if from_task is None:
            return False
        raise InvalidInput(
            f"{body['ref']} is not a workflow, so it has no results of tasks to keep",
            hint="Re-run all of it.",
        )
    tasks = [task["name"] for task in body["tasks"]]
    if from_task is not None and from_task not in tasks:
        raise NotFound(f"{body['ref']} has no task {from_task!r}", hint=did_you_mean(from_task, tasks))
    plan = (await read_plans(tx, {row.definition_id}))[row.definition_id]
    await read_kept_tasks(tx, row.id, plan, from_failed=from_failed, from_task=from_task)
    if parameters is not None:
        await parameters.check_kept_tasks(tx, from_failed=from_failed, from_task=from_task)
    return True
