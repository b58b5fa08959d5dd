"""The start of actions that follow the end of an execution, as its definition says (`on_success`, `on_failure`)."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
import structlog

from penstock.language.terms.ids import new_id
from penstock.store.admission import namespaces
from penstock.store.definitions import catalog
from penstock.store.executions import callbacks, executions
from penstock.store.executions.callbacks import FollowedExecution
from penstock.store.session.database import Transaction

log = structlog.get_logger()


async def start_callbacks(tx: Transaction, followed: Sequence[FollowedExecution]) -> None:
    """Start the actions that follow these executions. The caller has checked that no other delivery of the ends does
    so."""
    starts = [(execution, ref) for execution in followed for ref in execution.callbacks]
    if not starts:
        return
    refs = sorted({ref for _, ref in starts})
    definitions = {
        current.ref: current.definition_id
        for current in await catalog.current(tx, ["action", "workflow"], refs)
        if current.enabled
    }
    for execution, ref in starts:
        if ref not in definitions:
            log.warning(
                "callback.not_started",
                execution_id=str(execution.id),
                action=ref,
                reason="retired or not registered",
            )
    starts = [(execution, ref) for execution, ref in starts if ref in definitions]
    if not starts:
        return
    ids = await namespaces.places(tx, {namespaces.of(execution.tenant, ref) for execution, ref in starts})
    submissions = [
        executions.Submission(
            id=new_id(),
            namespace=ids[namespaces.of(execution.tenant, ref)],
            definition=definitions[ref],
            params=_parameters(execution, ref),
            tenant=execution.tenant,
            origin=_origin(execution),
        )
        for execution, ref in starts
    ]
    await executions.submit(tx, submissions)
    chained = [
        (execution.id, submission.id)
        for (execution, _), submission in zip(starts, submissions, strict=True)
        if execution.chained
    ]
    if chained:
        await callbacks.join_chains(tx, [cause for cause, _ in chained], [id for _, id in chained])


def _origin(execution: FollowedExecution) -> str:
    traced = {"trace": execution.trace} if execution.trace is not None else {}
    return orjson.dumps({"callback_of": str(execution.id), **traced}).decode()


def _parameters(execution: FollowedExecution, ref: str) -> str:
    """Return the parameters of a callback: `execution`, `status`, `result` and `error`. A local callback also gets
    `parameters`, those of the ended execution."""
    parameters = {"parameters": execution.parameters} if ref in execution.told_parameters else {}
    return orjson.dumps(
        {
            "execution": str(execution.id),
            "status": execution.status,
            "result": execution.result,
            "error": execution.error,
            **parameters,
        }
    ).decode()
