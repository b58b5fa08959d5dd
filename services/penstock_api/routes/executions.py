"""The routes of executions: start, list, show, cancel, re-run."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import orjson
from fastapi import Header, Query, Response
from fastapi.responses import PlainTextResponse

from penstock.errors import NotAllowed
from penstock.language.rules.secret_references import names_in
from penstock.operate import titles
from penstock.operate.access import DEFINE as DEFINING
from penstock.operate.durable_steps import Step, steps_of
from penstock.operate.executions import described_execution, drawing, ending, plain
from penstock.operate.why import why
from penstock.store.executions import executions, log_lines, past_attempts
from penstock.store.executions.execution_list import ListedExecution
from penstock_api.auth.access import OPERATE, READ, START, Asked, ExecutionId, must_have, own
from penstock_api.auth.chosen_executions import chosen_executions
from penstock_api.backend import Db, Here, Lists
from penstock_api.fast_path import quickly
from penstock_api.models import executions as models
from penstock_api.models.model import Page
from penstock_api.routes.router import Router

router = Router("executions")

NO_REASON, WHOLE = models.CommandReason(), models.Rerun()
Limit = Annotated[int, Query(ge=1, le=1000, description="The maximum number to return.")]


@router.post("/executions", status_code=201, dependencies=[START])
@quickly(models.Start)
async def start(
    given: models.Start,
    here: Here,
    caller: Asked,
    response: Response,
    idempotency_key: Annotated[
        str | None,
        Header(max_length=1000, description="The same key returns the same execution."),
    ] = None,
) -> models.Started:
    """Start an action or workflow. The answer comes once the execution is durably stored."""
    if not caller.may_start(given.action):
        raise NotAllowed(
            f"{caller.name} may not start {given.action!r}",
            hint=f"Its scopes name what it may start. Make a token with --scope start:{given.action}.",
        )
    if given.secrets:
        own(must_have(caller, DEFINING), given.tenant)
    id = await here.client.start(
        given.action,
        given.parameters,
        key=idempotency_key,
        tenant=own(caller, given.tenant),
        priority=given.priority,
        delay=given.delay,
        at=given.at,
        expires_at=given.expires_at,
        by=caller.name,
        secrets=given.secrets,
        budget=given.budget,
        when_spent=given.when_spent,
        max_depth=given.max_depth,
        max_descendants=given.max_descendants,
        labels=given.labels,
        debounce=given.debounce,
        debounce_key=given.debounce_key,
        at_most=given.at_most,
        keep=given.keep,
    )
    response.headers["location"] = f"/api/v1/executions/{id}"
    return models.Started(id=id)


@router.get("/executions", dependencies=[READ])
async def list_executions(
    session: Lists,
    caller: Asked,
    status: Annotated[
        list[str] | None, Query(description="Only executions with one of these statuses.")
    ] = None,
    action: Annotated[str | None, Query(description="Only executions of this action.")] = None,
    tenant: Annotated[str | None, Query(description="Only objects of this tenant.")] = None,
    since: Annotated[
        str | None,
        Query(description="Only executions created at this instant or later, or within this time: `24h`."),
    ] = None,
    until: Annotated[
        str | None,
        Query(description="Only executions created before this instant, or longer ago than this: `1h`."),
    ] = None,
    event: Annotated[UUID | None, Query(description="Only executions that this event started.")] = None,
    parent: Annotated[
        UUID | None, Query(description="Only the tasks of this execution of a workflow.")
    ] = None,
    children: Annotated[bool, Query(description="Include the tasks of workflows.")] = False,
    label: Annotated[
        list[str] | None,
        Query(
            description="Only executions with this label: `key=value`. With several labels, give the rarest first: "
            "that is faster."
        ),
    ] = None,
    key: Annotated[
        str | None, Query(description="Only the execution with this idempotency key in `tenant` (or public).")
    ] = None,
    waits_for_answer: Annotated[
        bool, Query(description="Only executions in which a question to a human is open.")
    ] = False,
    paused: Annotated[
        bool, Query(description="Only paused workflows, and the executions that contain them.")
    ] = False,
    before: Annotated[UUID | None, Query(description="The value of `next` of the previous page.")] = None,
    limit: Limit = 50,
) -> Page[ListedExecution]:
    """List the newest executions, open and ended ones. Ended executions are moved to an archive, which is
    listed too. They are deleted when their retention is over."""
    filters = {
        "status": status,
        "action": action,
        "tenant": tenant,
        "since": since,
        "until": until,
        "event": event,
        "parent": parent,
        "children": children,
        "label": label,
        "key": key,
        "waits_for_answer": waits_for_answer,
        "paused": paused,
    }
    rows = await titles.listed(session, chosen_executions(filters, caller), cursor=before, limit=limit)
    last = str(rows[-1].id) if len(rows) == limit else None
    return Page(items=rows, next=last)


@router.get("/executions/{id}", dependencies=[READ])
async def show(id: ExecutionId, session: Db) -> models.Execution:
    """Show everything about an execution, with the tree of its tasks if it is a workflow."""
    return models.Execution.model_validate(plain(await described_execution(session, id)))


@router.get(
    "/executions/{id}/result",
    dependencies=[READ],
    responses={202: {"model": models.Ending, "description": "It has not ended yet."}},
)
async def result(
    id: ExecutionId,
    backend: Here,
    response: Response,
    wait: Annotated[
        float, Query(ge=0, le=60, description="The maximum number of seconds to wait for its end.")
    ] = 0,
) -> models.Ending:
    """Return the result of an execution once it has ended. Before that the answer is 202: ask again."""
    end = await _ending(backend, id)
    if wait and not end.finished:
        await backend.until_ended(id, wait)
        end = await _ending(backend, id)
    response.status_code = 200 if end.finished else 202
    return end


async def _ending(backend: Here, id: UUID) -> models.Ending:
    async with backend.pool.session() as session:
        return models.Ending.model_validate(await ending(session, id))


@router.get("/executions/{id}/graph", response_class=PlainTextResponse, dependencies=[READ])
async def graph(
    id: ExecutionId,
    session: Db,
    notation: Annotated[
        str,
        Query(
            alias="as",
            pattern="^(mermaid|dot)$",
            description="The notation: `mermaid`, or `dot` of Graphviz.",
        ),
    ] = "mermaid",
) -> str:
    """Draw the state of a workflow's tasks in Mermaid or Graphviz."""
    return await drawing(session, id, notation)


@router.get("/executions/{id}/history", dependencies=[READ])
async def history(id: ExecutionId, session: Db) -> list[executions.Move]:
    """List every status of an execution, with its instant and its actor."""
    return await executions.history(session, await executions.get(session, id))


@router.get("/executions/{id}/attempts", dependencies=[READ])
async def attempts(id: ExecutionId, session: Db) -> list[past_attempts.PastAttempt]:
    """List the attempts of an execution, each with its times, its worker and its outcome."""
    return await past_attempts.attempts(session, await executions.get(session, id))


@router.get("/executions/{id}/steps", dependencies=[READ])
async def steps(id: ExecutionId, session: Db) -> list[Step]:
    """List the recorded steps of a durable function, in order. For any other execution the list is empty."""
    await executions.get(session, id)
    return await steps_of(session, id)


@router.get("/executions/{id}/logs", dependencies=[READ])
async def logs(
    id: ExecutionId,
    session: Db,
    after: Annotated[
        str | None,
        Query(pattern=r"^\d{1,9}-\d{1,18}$", description="The value of `next` of the previous answer."),
    ] = None,
) -> models.Log:
    """Return the printed and logged lines of an execution, at most 5,000 at once."""
    complete = await log_lines.are_all_there(session, (await executions.get(session, id)).finished_at)
    attempt, _, seq = (after or "0--1").partition("-")
    rows = await log_lines.after_each(session, {id: (int(attempt), int(seq))})
    lines = [line for _, line in rows]
    last = f"{lines[-1].attempt}-{lines[-1].seq}" if lines else after
    return models.Log(
        lines=lines,
        next=last,
        ended=complete and len(lines) < log_lines.PAGE,
    )


@router.get("/executions/{id}/why", dependencies=[READ])
async def explain(
    id: ExecutionId,
    session: Db,
    backend: Here,
    caller: Asked,
    task: Annotated[str | None, Query(description="One of its tasks, if it is a workflow.")] = None,
) -> models.Explanation:
    """Explain what an execution waits for, in one sentence with its facts, or how it ended."""
    answer = await why(session, id, backend.settings, task)
    if caller.tenants is not None:
        answer = answer.of_one_tenant()
    return models.Explanation.model_validate(answer.document())


@router.post("/executions/{id}/cancel", dependencies=[OPERATE])
async def cancel(
    id: ExecutionId, backend: Here, caller: Asked, body: models.CommandReason = NO_REASON
) -> models.CancelAnswer:
    """Ask an execution to end. A running one is notified at once; an ended one is left unchanged."""
    await executions.get(backend.client.session, id)
    reason = f"{body.reason or 'asked by the API'} ({caller.name})"
    return models.CancelAnswer(told=await backend.client.cancel(id, reason=reason))


@router.post("/executions/{id}/priority", dependencies=[OPERATE])
async def set_priority(id: ExecutionId, backend: Here, body: models.NewPriority) -> models.PriorityChanged:
    """Change the priority of an execution and of its tasks that have not ended. Waiting executions get their new place in
    the queue at once."""
    await executions.get(backend.client.session, id)
    return models.PriorityChanged(changed=await backend.client.set_priority(id, body.priority))


@router.post("/executions/{id}/reschedule", dependencies=[OPERATE])
async def reschedule(
    id: ExecutionId, backend: Here, caller: Asked, body: models.Reschedule
) -> models.Rescheduled:
    """Move the start of an execution, or of its next attempt, to another instant. It is refused once a worker has begun
    that attempt."""
    instant = await backend.client.reschedule(
        id, at=body.at, delay=body.delay, by=caller.name, reason=body.reason
    )
    return models.Rescheduled(at=instant)


@router.post("/executions/{id}/budget", status_code=204, dependencies=[OPERATE])
async def raise_budget(id: ExecutionId, backend: Here, body: models.RaiseBudget) -> None:
    """Raise a budget of an execution and all that it starts. Waiting executions start until the raised budget
    is used up."""
    await backend.client.raise_budget(id, body.unit, body.amount)


@router.post("/executions/{id}/rerun", status_code=201, dependencies=[OPERATE])
async def rerun(id: ExecutionId, backend: Here, caller: Asked, body: models.Rerun = WHOLE) -> models.Started:
    """Run an ended execution again, with the same version, and the same parameters unless some are changed. A
    change of a parameter that a kept task has read is refused (409). A change of parameters
    that refer to stored secrets needs the scope `define`."""
    if body.parameters or body.unset:
        row = await executions.get(backend.client.session, id)
        if names_in(orjson.loads(row.params or "{}")):
            own(must_have(caller, DEFINING), row.namespace.partition("::")[0])
    new = await backend.client.rerun(
        id,
        from_failed=body.from_failed,
        from_task=body.from_task,
        params=body.parameters,
        unset=body.unset,
        labels=body.labels,
        by=caller.name,
        reason=body.reason,
    )
    return models.Started(id=new)
