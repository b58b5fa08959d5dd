"""A database on which a race is played, and all that happens before and after it, one thing at a time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

import tenacity
from pydantic import SecretStr

from penstock.advance.child_targets import current_targets
from penstock.advance.open_workflows import open_workflows
from penstock.advance.remembered import RememberedWorkflows, all_tasks
from penstock.engine import Plan
from penstock.engine.serialization import load_task_state
from penstock.ids import new_id
from penstock.language.workflows.model import Workflow
from penstock.messaging.consumer import Batch, Handler
from penstock.messaging.outbox import Publisher
from penstock.messaging.supervision import Supervisor
from penstock.service.assembly import Parts
from penstock.service.heartbeat import Identity
from penstock.settings import Settings
from penstock.store import catalog, executions, namespaces, queues
from penstock.store.attempts import AttemptEnd
from penstock.store.database import Database, Row, Session, backoff
from penstock_executor.handlers import ROUTES
from penstock_executor.loops import fire_timers, reap_workers
from penstock_worker.claims import Claims
from penstock_worker.executor_room import ExecutorRoom
from penstock_worker.next_step import finish
from penstock_worker.next_work import NextWork, Taking
from penstock_worker.slots import Slots
from tests.interleavings.broker import Fickle, Silent
from tests.interleavings.scene_queries import LEFT, OPEN, REMEMBERED, RUNNING, TABLES, VIOLATED
from tests.interleavings.stage import Work
from tests.penstock.store.admission.desk import FINISH, Desk

HANDLERS: dict[str, Handler] = {route.queue: route.handle for route in ROUTES if not route.raw}
ROUNDS = 60


def _nothing(*_: object) -> Any: ...


def soon() -> tenacity.AsyncRetrying:
    """As `backoff`, in a hurry."""
    return backoff(first=0.002, most=0.02)


class Scene(Desk):
    """What races are about, and the executor's and worker's own code to race with."""

    def __init__(self, database: str) -> None:
        self.settings = Settings(
            database_url=SecretStr(database), stale_threshold=30, heartbeat_interval=10, sweep_interval=10
        )
        self.address = database
        home = Database(self.settings, role="scene")
        super().__init__(home)
        self.parts = Parts(self.settings, home, Silent(), Publisher(Silent(), home), Supervisor())
        self.definitions: Sequence[Any] = ()
        self.draw = random.Random(0)
        """For what a race draws besides whose turn it is."""
        self.broker: Fickle | None = None
        self._reset = ""

    async def begin(self) -> None:
        """Forget what the last race left."""
        if not self._reset:
            self._reset = (await self.session.fetch(TABLES))[0][0]
        async with self.session.transaction() as tx:
            await tx.execute(
                self._reset + " delete from process; update cluster set resumed_at = '-infinity'"
            )
        await self.hire(*(a.ref for a in self.definitions if getattr(a, "kind", "action") == "action"))

    # -- what races --------------------------------------------------------------------------------------------

    def handles(self, queue: str, ids: Sequence[UUID]) -> Work:
        """What a replica of the executor does with a message."""

        async def work(session: Session) -> None:
            async for attempt in soon():
                with attempt:
                    async with session.transaction() as tx:
                        await HANDLERS[queue](Batch(sorted(ids)), tx)

        return work

    def turns(self, turn: Callable[[Parts, Session], Awaitable[Any]]) -> Work:
        """What a loop of the executor does."""

        async def work(session: Session) -> None:
            async for attempt in soon():
                with attempt:
                    await turn(self.parts, session)

        return work

    def claims(self, ids: Sequence[UUID], worker: UUID | None = None, take: int = 100) -> Work:
        """What a worker does with an envelope, which comes again if that fails. Its answer: the ids that it got."""
        identity = Identity(worker or self.worker, "worker", "worker")

        async def work(session: Session) -> list[UUID]:
            async for attempt in soon():
                with attempt:
                    claims = Claims(session, identity, self._action, Slots(take), ExecutorRoom({}), {})
                    found = [claimed async for claimed in claims.claim("work.default", list(ids))]
            return [one.event.execution_id for claimed in found for one in claimed.attempts]

        return work

    def finishes(self, ids: Sequence[UUID], status: str = "completed", attempt: int = 1) -> Work:
        """What a worker does at the end of attempts. Its answer: the ids that it moved."""
        worker = self.worker

        async def work(session: Session) -> list[UUID]:
            async for again in soon():
                with again:
                    [row] = await session.fetch(
                        FINISH,
                        worker,
                        sorted(ids),
                        [attempt] * len(ids),
                        [status] * len(ids),
                        ['{"prompt": "?"}' if status == "waiting" else None] * len(ids),
                        [0.0] * len(ids),
                    )
            return list(row["moved"])

        return work

    def takes_steps(self, ids: Sequence[UUID]) -> Work:
        """What a worker does at the end of tasks, and with what follows them."""
        ends = [AttemptEnd(id, 1, "completed", None, None, 0.0, None, None, False) for id in sorted(ids)]
        return self._takes(ends, RememberedWorkflows())

    async def takes_remembered_steps(self, ids: Sequence[UUID]) -> Work:
        """The same of a worker that remembers their workflows as they are now."""
        remembered = RememberedWorkflows()
        await self._look_up()
        rows = await self.session.fetch(
            "select id, parent, task from execution where id = any($1) order by id", ids
        )
        async with self.session.transaction() as tx:
            for workflow in await open_workflows(tx, sorted({row["parent"] for row in rows})):
                [stored] = await tx.fetch(REMEMBERED, workflow.id)
                tasks = zip(stored["tasks"], stored["records"], strict=True)
                all_tasks(workflow, {task: load_task_state(record) for task, record in tasks})
                remembered.keep(workflow, stored["version"])
        ends = [
            AttemptEnd(
                row["id"], 1, "completed", None, None, 0.0, None, None, False, row["parent"], row["task"]
            )
            for row in rows
        ]
        return self._takes(ends, remembered)

    async def _look_up(self) -> None:
        """All that a step may start is known from memory."""
        refs = [one.ref for one in self.definitions if getattr(one, "kind", "action") == "action"]
        names = {
            f"public::{one.ref.replace('.', '::')}::{node.name}": node.step.action
            for one in self.definitions
            if isinstance(one, Workflow)
            for node in Plan(one).graph.nodes
            if node.step.action is not None
        }
        await namespaces.places(self.session, names)
        async with self.session.transaction() as tx:
            targets = await current_targets(tx, refs)
            await catalog.parameter_schemas(tx, [target.definition for target in targets.values()])

    def _takes(self, ends: Sequence[AttemptEnd], remembered: RememberedWorkflows) -> Work:
        worker = self.worker

        async def work(session: Session) -> None:
            slots = Slots(100)
            claims = Claims(
                session, Identity(worker, "worker", "worker"), self._action, slots, ExecutorRoom({}), {}
            )
            await claims.look_up(list(self._definitions.values()))
            next_work = NextWork(
                self.parts.publisher, slots, {"work.default"}, claims, _nothing, _nothing, asyncio.Event()
            )
            next_work.remembered = remembered
            go_on = Taking(next_work)
            session.cache.update(self.session.cache)
            async for attempt in soon():
                with attempt:
                    await finish(session, worker, ends, [], go_on)

        return work

    def cancels(self, ids: Sequence[UUID]) -> Work:
        async def work(session: Session) -> None:
            async for attempt in soon():
                with attempt:
                    async with session.transaction() as tx:
                        await executions.cancel(tx, ids, "asked")

        return work

    def calls(self, sql: str, *args: Any) -> Work:
        async def work(session: Session) -> list[Row]:
            async for attempt in soon():
                with attempt:
                    return await session.fetch(sql, *args)
            raise AssertionError

        return work

    def _action(self, ref: str) -> Any:
        return next((a for a in self.definitions if getattr(a, "ref", None) == ref), None)

    # -- what comes before and after ---------------------------------------------------------------------------

    async def submit(self, ref: str, params: str = "{}", count: int = 1) -> list[UUID]:
        """Executions as a client submits them."""
        ids = [new_id() for _ in range(count)]
        await self._space(ref)
        async with self.session.transaction() as tx:
            await executions.submit(
                tx,
                [
                    executions.Submission(
                        id, await self._space(ref), self._definitions[ref], params, "public"
                    )
                    for id in ids
                ],
            )
        return ids

    async def _space(self, ref: str) -> int:
        if ref not in self._spaces:
            name = namespaces.name("public", ref)
            self._spaces |= {ref: (await namespaces.places(self.session, {name: ref}))[name]}
            [row] = await catalog.current(self.session, ["action", "workflow"], [ref])
            self._definitions[ref] = row.definition_id
        return self._spaces[ref]

    async def deliver(self, *queues: str) -> int:
        """Hand every message of these queues (of all) to whom it is for."""
        rows = await self.session.fetch(
            "delete from outbox where queue = any($1::text[]) or $1 = '{}' returning id, queue, ids",
            list(queues),
        )
        for row in sorted(rows, key=lambda row: row["id"]):
            await self._deliver(row["queue"], row["ids"])
        return len(rows)

    async def _deliver(self, queue: str, ids: Sequence[UUID]) -> None:
        if queue.startswith(queues.WORK):
            taken = await self.claims(ids)(self.session)
            if taken:
                await self.finish(taken)
        elif queue in HANDLERS:
            await self.handles(queue, ids)(self.session)

    async def play_out(self) -> None:
        """Let everything go on, with nobody in its way, until nothing is left to do."""
        for _ in range(ROUNDS):
            moved = await self.deliver() + await self._report()
            await reap_workers.turn(self.parts, self.session)
            more = await fire_timers.turn(self.parts, self.session)
            if not moved and more is not True:
                return
        raise AssertionError("it goes on for ever")

    async def _report(self) -> int:
        """Workers that live end what they have: as they are asked to, where they are. How many there are."""
        rows = await self.session.fetch(RUNNING)
        for row in rows:
            ending = "cancelled" if row["status"] == "canceling" else "completed"
            mine, self.worker = self.worker, row["claim"]
            await self.finish([row["id"]], ending)
            self.worker = mine
        return len(rows)

    async def ended_well(self) -> None:
        """Nothing is open, nothing is held, and no invariant is violated."""
        left = await self.session.fetch(OPEN)
        assert not left, f"open: {[tuple(row) for row in left]}"
        [row] = await self.session.fetch(LEFT)
        assert (row["slots"], row["waiters"], row["lanes"], row["live"]) == (0, 0, 0, 0), dict(row)
        broken = [
            f"{row['name']}: {row['violations']}"
            for row in await self.session.fetch(VIOLATED)
            if row["violations"]
        ]
        assert not broken, broken
