"""The routes of bulk commands. Each request handles some thousands of objects at most, commits each batch of them by
itself, and returns where the rest begins. So no request takes long, and an interrupted one can be repeated."""

from __future__ import annotations

from penstock.client import dead_letters, executions
from penstock.client.bulk import Part, Tally, tally
from penstock.operate.access import Caller
from penstock.store.executions.execution_list import ExecutionFilter
from penstock.store.outbox.dead_letters import LetterFilter
from penstock_api.auth.access import OPERATE, OPERATE_ALL, Asked
from penstock_api.auth.chosen_executions import chosen_executions
from penstock_api.backend import Db, Here
from penstock_api.models import bulk as models
from penstock_api.routes.router import Router

router = Router("bulk")

CANCELLED, RERUN = 5_000, 1_000
"""The number of executions that one request cancels or re-runs at most."""


@router.post("/bulk/executions/cancel", dependencies=[OPERATE])
async def cancel(body: models.Bulk, backend: Here, caller: Asked) -> models.BulkDone:
    """Ask the unfinished executions that match the filter to end."""
    part = Part(body.before, CANCELLED)
    reason = f"{body.reason or 'asked by the API'} ({caller.name})"
    execution_filter = _chosen(body.chosen, caller)
    count = await executions.cancel(
        backend.client, execution_filter, reason=reason, dry_run=body.dry_run, part=part
    )
    return models.BulkDone(count=count, next=part.next)


@router.post("/bulk/executions/rerun", dependencies=[OPERATE])
async def rerun(body: models.BulkRerun, backend: Here, caller: Asked) -> models.BulkDone:
    """Run the ended executions that match the filter again, except those that were re-run before."""
    part = Part(body.before, RERUN)
    outcomes = executions.rerun(
        backend.client,
        _chosen(body.chosen, caller),
        by=caller.name,
        reason=body.reason,
        from_failed=body.from_failed,
        dry_run=body.dry_run,
        part=part,
    )
    return models.BulkDone.of(await tally(outcomes), part.next)


@router.post("/bulk/dead-letters/replay", dependencies=[OPERATE_ALL])
async def replay(body: models.BulkLetters, backend: Here) -> models.BulkDone:
    """Replay the dead letters that match the filter, once the cause is fixed."""
    return models.BulkDone.of(
        await tally(dead_letters.replay(backend.client, _letters(body), dry_run=body.dry_run))
    )


@router.post("/bulk/dead-letters/drop", dependencies=[OPERATE_ALL])
async def drop(body: models.BulkLetters, session: Db) -> models.BulkDone:
    """Delete the dead letters that match the filter."""
    dropped = await dead_letters.drop(session, _letters(body), dry_run=body.dry_run)
    return models.BulkDone.of(Tally(dropped))


def _letters(body: models.BulkLetters) -> LetterFilter:
    return LetterFilter(queue=body.queue, reason=body.reason)


def _chosen(selection: models.ChosenExecutions, caller: Caller) -> ExecutionFilter:
    """Return the filter, narrowed to the caller's tenants."""
    return chosen_executions(selection.model_dump(), caller)
