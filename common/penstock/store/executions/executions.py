"""The steps in the life of an execution; each is one call to the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Protocol
from uuid import UUID

import orjson
from pydantic import Field

from penstock.errors import NotFound
from penstock.language.moves import CANCELING, RUNNING
from penstock.store.session import clock
from penstock.store.session.database import Row, Session, Transaction
from penstock.store.session.rows import rows_as
from penstock.tracing import Trace, trace_of

NEVER = datetime.fromisoformat("9000-01-01T00:00:00+00:00")
"""The `not_before` of an execution that must not start: it is held until a release. The SQL function is held_until."""


@dataclass(slots=True)  # not frozen: that would double the time to create one, and many are created
class Submission:
    """A checked request to run an action, ready to be written with others in one commit. `params`, `options` and
    `origin` are JSON. `watcher` is the process to notify when the execution ends. `debounces`: `options` have a debounce
    time, and it may join the execution of another start. `is_workflow`: the definition is that of a workflow."""

    id: UUID
    namespace: int
    definition: int
    params: str
    tenant: str
    options: str | None = None
    origin: str | None = None
    priority: int = 0
    not_before: datetime | None = None
    expires: datetime | None = None
    key: str | None = None
    digest: str | None = None
    watcher: UUID | None = None
    debounces: bool = False
    is_workflow: bool = False


class Stages(Protocol):
    """A transaction that publishes the messages that its statements stage, or leaves that to a relay."""

    @property
    def empty(self) -> bool:
        """Return True if the transaction has done nothing yet, so that it may be one statement."""

    async def stage_alone(self, sql: str, *args: Any) -> list[Row]: ...


SUBMIT = """
select messages, stale, existing, conflicts
from submit_executions($1::uuid[], $2::integer[], $3::integer[], $4::text[], $5::text[], $6::text[],
    $7::smallint[], $8::timestamptz[], $9::timestamptz[], $10::text[], $11::text[], $12::text[], $13)
"""


AWAIT = """
with awaiting as (
    insert into awaited (execution_id, watcher) select * from unnest(${}::uuid[], ${}::uuid[]) order by 1 on conflict do nothing
)"""


def with_watchers(sql: str, group: Sequence[Submission], *args: Any) -> tuple[Any, ...]:
    """Return the statement and arguments of a submit, extended by the watchers of the group, if it has any. One
    statement does both: an execution may end a moment after the submit, before a later statement could name the
    watcher."""
    watched = [submission for submission in group if submission.watcher is not None]
    if not watched:
        return sql, *args
    ids, watchers = [submission.id for submission in watched], [submission.watcher for submission in watched]
    return AWAIT.format(len(args) + 1, len(args) + 2) + sql, *args, ids, watchers


@dataclass(slots=True)
class Submitted:
    """The result of a submit. `stale`: a definition is not current any more, and nothing was stored. The other
    submissions are mapped to stored executions. Those in `existing` have the idempotency key of the same request, or joined a
    burst. Those in `conflicts` have the key of another request, or do not fit their burst."""

    stale: bool
    existing: dict[UUID, UUID]
    conflicts: dict[UUID, UUID]


async def submit(tx: Stages, group: Sequence[Submission]) -> Submitted:
    """Create the executions of a group, all or none, in one round trip. If this is the whole transaction, and
    executions under limits are few, they are admitted or queued at once. Otherwise an executor does that."""
    keyed = any(s.key is not None for s in group)
    timed = any(s.expires is not None for s in group)
    arguments = (
        [s.id for s in group],
        [s.namespace for s in group],
        [s.definition for s in group],
        [s.params for s in group],
        [s.options for s in group],
        [s.origin for s in group],
        [s.priority for s in group],
        [s.not_before for s in group],
        [s.expires for s in group] if timed else None,
        [s.tenant for s in group] if keyed else None,
        [s.key for s in group] if keyed else None,
        [s.digest for s in group] if keyed else None,
        tx.empty,
    )
    [row] = await tx.stage_alone(*with_watchers(SUBMIT, group, *arguments))
    return Submitted(row["stale"], dict(row["existing"]), dict(row["conflicts"]))


SCHEDULE = "select schedule_executions($1::uuid[]) as messages"


async def schedule(tx: Transaction, ids: Sequence[UUID]) -> None:
    """Admit, route and stage the executions among `ids` that are still requested. Commits by itself (`stage_alone`):
    `tx` must not have run a statement."""
    await tx.stage_alone(SCHEDULE, ids)


SCHEDULE_SUBMITTED = "select schedule_submitted($1::uuid[]) as messages"


async def schedule_submitted(tx: Transaction, ids: Sequence[UUID]) -> None:
    """Schedule executions of the caller that their submit has left to an executor. Does nothing if a lock of their keys
    is held for more than two seconds. Commits by itself (`stage_alone`): `tx` must not have run a statement."""
    await tx.stage_alone(SCHEDULE_SUBMITTED, ids)


CANCEL = "select messages, canceling, stopping, moved from cancel_executions($1::uuid[], $2)"
CANCEL_NESTED = "select messages, canceling, notified from cancel_nested($1::uuid[], $2)"


async def cancel(tx: Transaction, ids: Sequence[UUID], reason: str, *, by_hand: bool = False) -> int:
    """Cancel executions: those without a worker end at once, the others when their worker is notified. Return the
    number of executions that were ended or notified; the others had ended before.

    Only a request `by_hand` cancels what cleans up already: the exit task of a workflow, or a durable function and the open
    children of that function. An ended function with children that still clean up counts as notified, too.
    """
    if by_hand:
        [row] = await tx.stage(CANCEL_NESTED, sorted(ids), reason)
        notified = len(row["notified"])
    else:
        [row] = await tx.stage(CANCEL, sorted(ids), reason)
        # ended at once, run by a worker, workflows
        notified = len(row["moved"] + row["canceling"] + row["stopping"])
    tx.tell(asked=len(ids), told=notified)
    return notified


SET_PRIORITY = "select messages, changed from set_priority($1, $2)"


async def set_priority(tx: Transaction, id: UUID, priority: int) -> int:
    """Set the priority of an unfinished execution and of its unfinished tasks. Return the number of executions that had
    another priority."""
    [row] = await tx.stage(SET_PRIORITY, id, priority)
    tx.tell(priority=priority, changed=len(row["changed"]))
    return len(row["changed"])


RESCHEDULE = "select messages, outcome from reschedule_execution($1, $2, $3, $4)"


async def reschedule(tx: Transaction, id: UUID, at: datetime, by: str, reason: str | None) -> str:
    """Set the instant at which an execution becomes ready, while no worker has begun its next attempt. `by` is the author of
    the command. Return `moved`, or the
    reason why nothing was changed: `missing`, `ended`, `begun`, `held`, `expires`, or `ready`, if it is due already."""
    [row] = await tx.stage(RESCHEDULE, id, at, by, reason)
    tx.tell(outcome=row["outcome"])
    return str(row["outcome"])


END = "select messages, moved from end_executions($1::uuid[], $2::text[], $3, $4, $5)"


async def end(
    tx: Transaction, ids: Sequence[UUID], from_: Sequence[str], to: str, reason: str, error: str | None = None
) -> list[UUID]:
    """End executions that are in one of the statuses `from_`. Return the ids that this call ended."""
    [row] = await tx.stage(END, sorted(ids), list(from_), to, reason, error)
    return list(row["moved"])


LOCK_SCHEDULED = """
select e.id, n.queue from execution e join namespace n on n.id = e.namespace_id
where e.id = any($1::uuid[]) and e.status = 'scheduled' and n.queue = any($2::text[])
order by e.id for no key update of e
"""


async def lock_scheduled(tx: Transaction, ids: Sequence[UUID], queues: Sequence[str]) -> dict[UUID, str]:
    """Lock the executions among `ids`, in order, that wait for a worker on one of these queues. Return the queue of
    each."""
    return {row["id"]: row["queue"] for row in await tx.fetch(LOCK_SCHEDULED, ids, queues)}


@dataclass(slots=True)
class Execution:
    """An execution, open, finished or archived. `params`, `options`, `origin`, `result` and `error` are JSON. `item`
    is -1 if its task has no items. `kind` is action, workflow or wait; a wait has no `queue`. `since`: the beginning
    of its present wait. If it is archived, `kind`, `queue`, `ready_at`, `since`, `not_before` and `claim` are None."""

    id: UUID
    status: str
    namespace: str
    action: str
    kind: str | None
    queue: str | None
    attempt: int
    failures: int
    recoveries: int
    priority: int
    parent: UUID | None
    task: str | None
    item: int
    created_at: datetime
    ready_at: datetime | None
    since: datetime | None
    not_before: datetime | None
    finished_at: datetime | None
    reason: str | None
    definition_id: int
    params: str | None
    options: str | None
    origin: str | None
    result: str | None
    error: str | None
    claim: UUID | None

    @property
    def open_queue(self) -> str:
        """Return the queue of an execution that is not archived."""
        assert self.queue is not None
        return self.queue

    @property
    def trace(self) -> Trace | None:
        """Return the trace of the execution, from its origin; None if it is not traced."""
        origin = orjson.loads(self.origin) if self.origin is not None else None
        return trace_of(origin.get("trace")) if origin else None

    @property
    def starter(self) -> UUID | None:
        """Return the execution that started this one by its code, from its origin; None if it was started in another way."""
        origin = orjson.loads(self.origin) if self.origin is not None else None
        starter = origin.get("started_by") if origin else None
        return None if starter is None else UUID(starter)


FIND = "select * from find_executions($1::uuid[])"


async def find(session: Session | Transaction, ids: Sequence[UUID]) -> list[Execution]:
    """Return executions by id, open or archived, with their parameters and results. A client's role gets those that it
    started, and their tasks."""
    return rows_as(Execution, await session.fetch(FIND, list(ids)))


async def get(session: Session | Transaction, id: UUID) -> Execution:
    """Return an execution, open or archived. Raises NotFound if no execution has this id."""
    rows = await find(session, [id])
    if not rows:
        raise missing(id)
    return rows[0]


def missing(id: UUID) -> NotFound:
    """Return the error that says that no execution has this id."""
    return NotFound(
        f"no execution {id}",
        hint="See the newest executions: `penstock executions`. Ended executions are deleted when their retention is over.",
    )


TENANT = """
select split_part(n.name, '::', 1) as tenant from execution e join namespace n on n.id = e.namespace_id where e.id = $1
union all
select split_part(namespace, '::', 1) from archive where id = $1
"""


BY_END = """
select x.id from (
    (select id from execution order by id desc limit $2) union all (select id from archive order by id desc limit $2)
) x where right(x.id::text, length($1)) = $1 order by x.id desc limit 1
"""
NEWEST_IDS = 20_000
"""The number of newest open and ended executions, and of archived ones, among which an id is found by its end."""


async def with_end(session: Session, end: str) -> UUID | None:
    """Return the newest execution with this end of its id, among the NEWEST_IDS; None if there is none."""
    rows = await session.fetch(BY_END, end, NEWEST_IDS)
    return next((UUID(int=row["id"].int) for row in rows), None)


ITSELF_OR_TASKS = "select id from execution where id = any($2::uuid[]) and (id = $1 or parent = $1)"


async def itself_or_tasks(session: Session, id: UUID, of: Sequence[UUID]) -> set[UUID]:
    """Filter `of` to this execution and its tasks."""
    return {UUID(int=row["id"].int) for row in await session.fetch(ITSELF_OR_TASKS, id, of)}


async def tenant(session: Session, id: UUID) -> str | None:
    """Return the tenant of an execution; None if it does not exist."""
    return next((str(row["tenant"]) for row in await session.fetch(TENANT, id)), None)


WITH_KEY = "select execution_id from idempotency where tenant = $1 and key = $2"


async def with_key(db: Session | Transaction, tenant: str, key: str) -> UUID | None:
    """Return the execution that was started with an idempotency key; None if no start has it. The row of a key is kept, and
    names the same execution, at least until that execution is archived. So a caller needs no lock on the row."""
    return next((UUID(int=row["execution_id"].int) for row in await db.fetch(WITH_KEY, tenant, key)), None)


KEY_OF = "select key from idempotency where execution_id = $1 order by created_at, key limit 1"


async def key_of(session: Session, id: UUID) -> str | None:
    """Return the idempotency key of an execution's start. If several starts have joined the execution, return the key of
    the first one. Return None if it has no key, or if the key is not kept any more."""
    return next((str(row["key"]) for row in await session.fetch(KEY_OF, id)), None)


@dataclass(slots=True)
class ExecutionEnd:
    """The end of an execution. `result` and `error` are JSON."""

    id: UUID
    status: str
    result: str | None
    error: str | None


@dataclass(slots=True)
class Move:
    """A change of an execution's status: its instant, the old and the new status, the attempt, the actor, and the
    reason."""

    at: Annotated[datetime, Field(description="The instant of the change.")]
    old: Annotated[str | None, Field(description="The status before; null for the first one.")]
    new: Annotated[str, Field(description="The status after.")]
    attempt: Annotated[int, Field(description="The number of the attempt at that time; 0 before the first.")]
    actor: Annotated[
        str | None,
        Field(description="The process that made the change, such as `worker:NAME`; null: not known."),
    ]
    reason: Annotated[
        str | None, Field(description="The reason why the status changed; null: no reason is known.")
    ]


HISTORY = "select at, old, new, attempt, actor, reason from moves_of_execution($1, $2, $3)"


async def history(session: Session, execution: Execution) -> list[Move]:
    """Return every move of an execution, oldest first."""
    rows = await session.fetch(HISTORY, execution.id, execution.created_at, execution.finished_at)
    return rows_as(Move, rows)


async def waited_and_ran(session: Session, execution: Execution) -> tuple[float | None, float | None]:
    """Return the seconds that an execution waited (for a slot, a worker, an instant, a human), and the seconds that
    it ran. Both are None if its history was dropped."""
    moves = await history(session, execution)
    if not moves:
        return None, None
    ends = [*(move.at for move in moves[1:]), execution.finished_at or await clock.now(session)]
    ran = sum(
        (end - move.at).total_seconds()
        for move, end in zip(moves, ends, strict=True)
        if move.new in (RUNNING, CANCELING)
    )
    return max(0.0, (ends[-1] - execution.created_at).total_seconds() - ran), max(0.0, ran)
