"""The routes of commands to runs: pause, resume, skip, set a result, end a wait by hand, and signals to durable functions. A
command is stored with its sender and reason. A workflow follows it under its lock."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from penstock.errors import InvalidInput
from penstock.run.sent_signal import SentSignal
from penstock_api.auth.access import OPERATE, Asked, ExecutionId, own
from penstock_api.backend import Backend, Here
from penstock_api.models import executions as models
from penstock_api.routes.router import Router

router = Router("executions")

NO_REASON = models.CommandReason()
Kind = Literal["pause", "resume", "skip", "set_result"]


@router.post("/executions/{id}/pause", status_code=202, dependencies=[OPERATE])
async def pause(
    id: ExecutionId, backend: Here, caller: Asked, body: models.CommandReason = NO_REASON
) -> models.Accepted:
    """Pause the execution of a workflow: nothing more starts in it or in workflows inside it. Attempts that workers have
    begun go on."""
    return await _tell(backend, id, "pause", caller.name, body.reason)


@router.post("/executions/{id}/resume", status_code=202, dependencies=[OPERATE])
async def resume(
    id: ExecutionId, backend: Here, caller: Asked, body: models.CommandReason = NO_REASON
) -> models.Accepted:
    """Resume a paused execution. Work that became due during the pause starts."""
    return await _tell(backend, id, "resume", caller.name, body.reason)


@router.post("/executions/{id}/skip", status_code=202, dependencies=[OPERATE])
async def skip(id: ExecutionId, backend: Here, caller: Asked, body: models.Skip) -> models.Accepted:
    """Skip a task or a step that has not ended."""
    return await _tell(backend, id, "skip", caller.name, body.reason, body.task, ahead=body.ahead)


@router.post("/executions/{id}/set-result", status_code=202, dependencies=[OPERATE])
async def set_result(
    id: ExecutionId, backend: Here, caller: Asked, body: models.SetResult
) -> models.Accepted:
    """Complete a task or a step that has not ended, with this result."""
    name, result = body.task, body.result
    return await _tell(backend, id, "set_result", caller.name, body.reason, name, result, ahead=body.ahead)


@router.post("/executions/{id}/complete", status_code=204, dependencies=[OPERATE])
async def complete(id: ExecutionId, backend: Here, caller: Asked, body: models.Complete) -> None:
    """End a wait for an outside system by hand, with a result or with an error of the attempt. It is refused for an
    execution that waits for something else."""
    if not body.model_fields_set:
        raise InvalidInput(
            "an outcome has either a result or an error", hint='Send {"result": ...} or {"error": "..."}.'
        )
    await backend.client.complete(id, result=body.result, error=body.error, by=caller.name)


@router.post("/executions/{id}/signal", dependencies=[OPERATE])
async def signal(id: ExecutionId, body: models.Signal, backend: Here) -> SentSignal:
    """Send a signal to a durable function. It is stored if the function does not wait for it yet, and `notice` says so."""
    return await backend.client.signal(id, body.name, body.value)


@router.post("/signals", dependencies=[OPERATE])
async def signal_by_key(caller: Asked, body: models.SignalByKey, backend: Here) -> SentSignal:
    """Send a signal to the durable function that was started with an idempotency key. `execution_id` of the answer names its
    execution."""
    tenant = own(caller, body.tenant)
    return await backend.client.signal(key=body.key, tenant=tenant, name=body.name, value=body.value)


async def _tell(
    backend: Backend,
    id: UUID,
    kind: Kind,
    by: str,
    reason: str | None,
    task: str | None = None,
    value: Any = None,
    *,
    ahead: bool = False,
) -> models.Accepted:
    notice = await backend.client.command(id, kind, task=task, value=value, by=by, reason=reason, ahead=ahead)
    return models.Accepted(id=id, command=kind, by=by, notice=notice)
