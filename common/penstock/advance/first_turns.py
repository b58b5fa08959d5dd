"""The first turns of workflows, decided by the process that submits them. A workflow then begins in the transaction of
its submit: no message goes to an executor, and no second transaction is needed.

Not here: the first turns of all other workflows, which an executor takes (`penstock_executor.handlers.workflow_started`).
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from datetime import UTC, datetime

import structlog

from penstock.advance.child_targets import current_targets
from penstock.advance.open_workflows import opened, read_plans
from penstock.advance.remembered_workflows import FromMemory, NotRemembered, remembered_children
from penstock.advance.start_children import ChildStart, place
from penstock.advance.turns import take_turns
from penstock.advance.write_decisions import new_state
from penstock.language.workflows.target import target_ref
from penstock.run.stored_json import stored_value
from penstock.store.definitions import catalog
from penstock.store.executions.executions import Submission
from penstock.store.session.database import Session
from penstock.store.workflows import first_turns
from penstock.store.workflows.first_turns import FirstTurn
from penstock.store.workflows.state import NewState, StoredWorkflow

log = structlog.get_logger()

MOST_STARTS = 8
"""The most tasks that a submit starts. Each takes some statements, and an executor starts larger numbers together."""
MOST_BYTES = 100_000
"""The largest size of the parameters of a workflow that begin here."""
MOST_KNOWN = 1000
"""The number of pairs of a definition and a tenant that are remembered as seen."""
REFUSED_S = 30.0
"""Seconds for which no turn is decided for a workflow, after the database has refused one or it could not be decided."""
UNKNOWN_HERE = re.compile(r"\bsystem\b(?!\.(id|workflow|depth|tenant|status)\b)")
"""The pattern of documents that may read more of `system` than the submitter knows. The instant of creation is the
database's."""
NOT_YET = datetime(1970, 1, 1, tzinfo=UTC)


class FirstTurns:
    """The decisions on first turns of a process. The first start of a workflow for a tenant is left to an executor: a
    process that starts a single workflow would only compile it for nothing. The second start has read what later decisions
    need. No start waits for it: until it is there, starts are left to an executor."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._may_begin: bool | None = None
        self._known: OrderedDict[tuple[int, str], bool] = OrderedDict()
        """The pairs of a definition and a tenant that were started before, and whether the facts of their first turn
        were read."""
        self._put_off: dict[int, float] = {}
        """The instants before which no turn of these definitions is decided."""
        self._reads: dict[tuple[int, str], asyncio.Task[None]] = {}

    async def decide(self, submission: Submission) -> FirstTurn | None:
        """Return the first turn of this workflow, or None if an executor has to take it."""
        pair = (submission.definition, submission.tenant)
        was_read = self._known.get(pair)
        if was_read is None:
            self._know(pair, was_read=False)
            return None
        origin = submission.origin or ""
        if (
            '"trace"' in origin
            or '"started_by"' in origin
            or time.monotonic() < self._put_off.get(submission.definition, 0.0)
        ):
            return None
        if not was_read:
            if pair not in self._reads:
                self._reads[pair] = asyncio.create_task(self._read_once(submission), name="first_turns.read")
            return None
        try:
            turn = await self._decide(submission)
        except Exception:
            log.warning("first_turn.not_decided", execution_id=str(submission.id), exc_info=True)
            turn = None
        if turn is None:
            self.refused(submission)
        return turn

    async def settle(self) -> None:
        """Wait until the reads for first turns have ended."""
        await asyncio.gather(*self._reads.values())

    async def close(self) -> None:
        """Cancel the reads for first turns."""
        reads = list(self._reads.values())
        for read in reads:
            read.cancel()
        await asyncio.gather(*reads, return_exceptions=True)

    def refused(self, submission: Submission) -> None:
        """Note that this workflow begins in an executor, so that its next starts are not decided for nothing."""
        if len(self._put_off) > MOST_KNOWN:
            self._put_off.clear()
        self._put_off[submission.definition] = time.monotonic() + REFUSED_S
        self._know((submission.definition, submission.tenant), was_read=False)

    def _know(self, pair: tuple[int, str], *, was_read: bool) -> None:
        self._known[pair] = was_read
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)

    async def _read_once(self, submission: Submission) -> None:
        """Read what the first turns of this workflow need, so that its next starts are decided."""
        pair = (submission.definition, submission.tenant)
        try:
            was_read = await self._read(submission)
        except Exception:
            # The starts go on without a turn, and the read is tried again later.
            log.warning("first_turn.not_read", execution_id=str(submission.id), exc_info=True)
            was_read = False
        finally:
            del self._reads[pair]
        if was_read:
            self._know(pair, was_read=True)
        else:
            self.refused(submission)

    async def _read(self, submission: Submission) -> bool:
        """Read what the first turn needs: the plan, and the namespaces, versions and schemas of the tasks that start.
        Return False if this process cannot decide the turn."""
        if self._may_begin is None:
            self._may_begin = await first_turns.may_begin(self._session)
        if not self._may_begin:
            return False
        plans = await read_plans(self._session, [submission.definition])
        if UNKNOWN_HERE.search(plans[submission.definition].workflow.model_dump_json()):
            return False
        turn = await self._take(submission)
        if turn is None:
            return False
        _, starts = turn
        await place(self._session, starts)
        targets = await current_targets(self._session, {target_ref(start.step) for _, start, _ in starts})
        await catalog.parameter_schemas(self._session, [target.definition for target in targets.values()])
        return True

    async def _take(self, submission: Submission) -> tuple[NewState, list[ChildStart]] | None:
        """Take the first turn from memory. Return the new state and the starts, or None if it does not just start a few
        tasks."""
        memory = FromMemory(self._session)
        try:
            plans = await read_plans(memory, [submission.definition])
            workflow = opened(_stored(submission), plans[submission.definition], None)
            turns = await take_turns(memory, [workflow])
        except NotRemembered:
            return None
        [(_, turn)] = turns
        if not turn.only_starts or turn.more_due or turn.final is not None:
            return None
        starts = [ChildStart.of(workflow, start) for start in turn.starts[1]]
        return (new_state(turns), starts) if 0 < len(starts) <= MOST_STARTS else None

    async def _decide(self, submission: Submission) -> FirstTurn | None:
        if len(submission.params) > MOST_BYTES or (turn := await self._take(submission)) is None:
            return None
        state, starts = turn
        try:
            children, targets = await remembered_children(FromMemory(self._session), starts)
        except NotRemembered:
            return None
        if any(child.options is not None or child.not_before is not None for child in children):
            return None
        return FirstTurn(submission, state, children, targets)


def _stored(submission: Submission) -> StoredWorkflow:
    """Return the workflow as an executor would read it after the submit."""
    return StoredWorkflow(
        id=submission.id,
        definition=submission.definition,
        depth=0,
        tenant=submission.tenant,
        state=None,
        rerun=None,
        stops=0,
        stop_status=None,
        stop_reason=None,
        created_at=NOT_YET,
        parameters=stored_value(submission.params.encode()),
        context=None,
    )
