"""Commands on many things at once. Each request does some thousands at the most, each batch of them committed by itself, and says
where the rest begins: so none takes long, and one that is broken off is asked again."""

from __future__ import annotations

from penstock.client import dead_letters, executions
from penstock.client.bulk import Part, Tally, tally
from penstock.errors import InvalidInput
from penstock.language.moves import STATUSES
from penstock.operate.access import Caller
from penstock.store.dead_letters import LetterFilter
from penstock.store.execution_list import ExecutionFilter
from penstock_api.access import OPERATE, OPERATE_ALL, Asked, own
from penstock_api.backend import Db, Here
from penstock_api.models import bulk as models
from penstock_api.routes.router import Router

router = Router("bulk")

CANCELLED, RERUN = 5_000, 1_000
"""Executions of one request."""


@router.post("/bulk/executions/cancel", dependencies=[OPERATE])
async def cancel(given: models.Bulk, here: Here, caller: Asked) -> models.BulkDone:
    """Ask those to end that are chosen and have not ended."""
    part = Part(given.before, CANCELLED)
    reason = f"{given.reason or 'asked by the API'} ({caller.name})"
    chosen = _chosen(given.chosen, caller)
    told = await executions.cancel(here.client, chosen, reason=reason, dry_run=given.dry_run, part=part)
    return models.BulkDone(count=told, next=part.next)


@router.post("/bulk/executions/rerun", dependencies=[OPERATE])
async def rerun(given: models.BulkRerun, here: Here, caller: Asked) -> models.BulkDone:
    """Run those once more that are chosen, have ended, and were not run once more already."""
    part = Part(given.before, RERUN)
    outcomes = executions.rerun(
        here.client,
        _chosen(given.chosen, caller),
        by=caller.name,
        reason=given.reason,
        from_failed=given.from_failed,
        dry_run=given.dry_run,
        part=part,
    )
    return models.BulkDone.of(await tally(outcomes), part.next)


@router.post("/bulk/dead-letters/replay", dependencies=[OPERATE_ALL])
async def replay(given: models.BulkLetters, here: Here) -> models.BulkDone:
    """Put those back that are chosen, once what was wrong is right."""
    return models.BulkDone.of(
        await tally(dead_letters.replay(here.client, _letters(given), dry_run=given.dry_run))
    )


@router.post("/bulk/dead-letters/drop", dependencies=[OPERATE_ALL])
async def drop(given: models.BulkLetters, session: Db) -> models.BulkDone:
    """Forget those that are chosen."""
    dropped = await dead_letters.drop(session, _letters(given), dry_run=given.dry_run)
    return models.BulkDone.of(Tally(dropped))


def _letters(given: models.BulkLetters) -> LetterFilter:
    return LetterFilter(queue=given.queue, reason=given.reason)


def _chosen(given: models.ChosenExecutions, caller: Caller) -> ExecutionFilter:
    """Return the filter, narrowed to the caller's own tenants."""
    if unknown := sorted(set(given.status or ()) - set(STATUSES)):
        raise InvalidInput(
            f"there is no status {', '.join(unknown)}", hint=f"There are: {', '.join(STATUSES)}."
        )
    tenants = caller.tenants if given.tenant is None else frozenset((own(caller, given.tenant),))
    return ExecutionFilter(**given.model_dump(exclude={"tenant"}), tenants=tenants)
