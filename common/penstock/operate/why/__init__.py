"""The answer to "why is it waiting?": a sentence that a person understands, and the facts behind it.

Everything is read on request, from PostgreSQL alone, so that the answer is available while the broker is away, too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import UUID

from penstock.errors import NotFound
from penstock.language.moves import CANCELING, FINAL, QUEUED, REQUESTED, RUNNING, SCHEDULED, WAITING
from penstock.operate.why import ended, not_started, queued, running, workflow
from penstock.operate.why.answer import OTHER_ROUTE, Step, Why, span
from penstock.settings import Settings
from penstock.store.admission import namespaces, waiting_for
from penstock.store.executions import executions, past_attempts
from penstock.store.executions.executions import Execution
from penstock.store.session.database import Session

Reader = Callable[[Session, Execution, Settings], Awaitable[Why]]

READERS: dict[str, Reader] = {
    REQUESTED: not_started.requested,
    QUEUED: queued.queued,
    SCHEDULED: not_started.scheduled,
    RUNNING: running.running,
    CANCELING: running.canceling,
    WAITING: running.waiting,
    **dict.fromkeys(FINAL, ended.ended),
}


NOT_BEGUN = (REQUESTED, QUEUED, SCHEDULED)
OTHER_SLOTS = f"If all slots are held in this way, none of them ever becomes free. {OTHER_ROUTE}"
"""The way out for executions that wait for each other's slots."""
MAY_BE_HANDED_BACK = (REQUESTED, QUEUED, SCHEDULED, RUNNING)


async def why(session: Session, id: UUID, settings: Settings, task: str | None = None) -> Why:
    """Explain what an execution, or a task of a running workflow, waits for, or how it ended. Raises NotFound if no
    execution has this id, or the workflow has no such task."""
    row = await _found(session, id)
    if task is not None:
        child = await workflow.child(session, row, task)
        if isinstance(child, Why):
            return child
        row = await _found(session, child)
    answer = await _with_hand_backs(session, await READERS[row.status](session, row, settings), row)
    answer = await _with_awaited_child(session, answer, row, settings)
    return await _to_the_cause(session, answer, row, settings)


async def _with_hand_backs(session: Session, answer: Why, row: Execution) -> Why:
    """Return an answer that also says how often workers handed the execution back, if that was more than once in a row."""
    if row.attempt < 2 or row.status not in MAY_BE_HANDED_BACK:
        return answer
    return next(
        (
            answer.with_detail(
                f"Workers handed the execution back {entry.attempts} times in a row within "
                f"{span(entry.seconds.total_seconds())}: {', '.join(entry.workers)}.",
                handed_back=entry.attempts,
                handed_back_by=entry.workers,
            )
            for entry in await past_attempts.handed_back(session, [row.id])
            if entry.attempts > 1
        ),
        answer,
    )


async def _with_awaited_child(session: Session, answer: Why, row: Execution, settings: Settings) -> Why:
    """Return an answer that also names a child that has not begun. The answer of an attempt that waits for a child's result
    (`current().run`) names the child, and that of the child names the attempt. The two can wait for each other's slot."""
    if row.status == RUNNING:
        wait = await waiting_for.awaited_child(session, row.id)
        children = [] if wait is None else await executions.find(session, [wait.child])
        if wait is None or not children or children[0].status not in NOT_BEGUN:
            return answer
        child = await READERS[children[0].status](session, children[0], settings)
        detail = f"It waits for its child {wait.child} ({children[0].action}), which {child.own}."
        if wait.on_same_worker and _lacks_slot(child):
            detail += f" This attempt holds one of these slots. {OTHER_SLOTS}"
        return answer.with_detail(detail, awaited_child=wait.child)
    if row.status == SCHEDULED and _lacks_slot(answer) and (starter := row.starter) is not None:
        wait = await waiting_for.awaited_child(session, starter, row.id)
        if wait is not None and wait.on_same_worker:
            detail = f"{wait.parent} ({wait.parent_action}) waits for it, and holds one of these slots. {OTHER_SLOTS}"
            return answer.with_detail(detail, awaited_by=wait.parent)
    return answer


def _lacks_slot(answer: Why) -> bool:
    """Return True if an execution waits for a free slot of a worker that could run it."""
    workers = answer.facts.get("workers")
    return answer.because == "route" and workers is not None and workers["busy"] >= workers["slots"]


async def _to_the_cause(session: Session, answer: Why, row: Execution, settings: Settings) -> Why:
    """Return an answer with its cause: the answer for the execution inside that waits for none. Each query has its own
    snapshot, so an execution on the way may have ended."""
    if answer.child is None or not answer.child.way:
        return answer
    rows = {inside.id: inside for inside in await executions.find(session, answer.child.way)}
    path: list[Step] = []
    cause = row
    for id in answer.child.way:
        if id not in rows:
            return answer
        parent, cause = cause, rows[id]
        name = cause.task or cause.action
        # The parent is a durable function, which may have several steps of one name.
        if parent.kind == namespaces.ACTION:
            label = name if cause.item <= 1 else f"{name}:{cause.item}"
            path.append(Step(id, "step", label, parent.action))
        else:
            label = name if cause.item < 0 else f"{name}[{cause.item}]"
            path.append(Step(id, "task", label, parent.action))
    return answer.with_cause(path, await READERS[cause.status](session, cause, settings))


async def _found(session: Session, id: UUID) -> Execution:
    rows = await executions.find(session, [id])
    if not rows:
        raise NotFound(
            f"no execution {id}",
            hint="See the newest executions: `penstock executions`. For an event: `penstock show ID`.",
        )
    return rows[0]


__all__ = ["Why", "why"]
