"""Starts the actions that follow the end of an execution, as its definition says (`on_success`, `on_failure`)."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
import structlog

from penstock.language.ids import new_id
from penstock.store import catalog, executions, namespaces
from penstock.store.callbacks import FollowedExecution
from penstock.store.database import Transaction

log = structlog.get_logger()


async def start_callbacks(tx: Transaction, ended: Sequence[FollowedExecution]) -> None:
    """Start what follows these executions. No other delivery of their ends has done so before."""
    wanted = [(execution, ref) for execution in ended for ref in execution.callbacks]
    if not wanted:
        return
    refs = sorted({ref for _, ref in wanted})
    known = {
        current.ref: current.definition_id
        for current in await catalog.current(tx, ["action", "workflow"], refs)
        if current.enabled
    }
    for execution, ref in wanted:
        if ref not in known:
            log.warning(
                "callback.not_started",
                execution_id=str(execution.id),
                action=ref,
                reason="retired or not registered",
            )
    wanted = [(execution, ref) for execution, ref in wanted if ref in known]
    if not wanted:
        return
    ids = await namespaces.places(tx, {namespaces.of(execution.tenant, ref) for execution, ref in wanted})
    await executions.submit(
        tx,
        [
            executions.Submission(
                id=new_id(),
                namespace=ids[namespaces.of(execution.tenant, ref)],
                definition=known[ref],
                params=_parameters(execution),
                tenant=execution.tenant,
                origin=_origin(execution),
            )
            for execution, ref in wanted
        ],
    )


def _origin(execution: FollowedExecution) -> str:
    traced = {"trace": execution.trace} if execution.trace is not None else {}
    return orjson.dumps({"callback_of": str(execution.id), **traced}).decode()


def _parameters(execution: FollowedExecution) -> str:
    """Return the parameters of a callback: `execution`, `status`, `result`, `error`."""
    return orjson.dumps(
        {
            "execution": str(execution.id),
            "status": execution.status,
            "result": execution.result,
            "error": execution.error,
        }
    ).decode()
