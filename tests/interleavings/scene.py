"""A database on which a race is played, and all that happens before and after it, one thing at a time."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

import tenacity
from pydantic import SecretStr

from penstock.language.terms.ids import new_id
from penstock.messaging.consumer import Batch, Handler
from penstock.messaging.outbox import Publisher
from penstock.messaging.supervision import Supervisor
from penstock.service.assembly import Parts
from penstock.service.heartbeat import Identity
from penstock.settings import Settings
from penstock.store.admission import namespaces
from penstock.store.definitions import catalog
from penstock.store.executions import executions
from penstock.store.outbox import queues
from penstock.store.session.database import Database, Row, Session, backoff
from penstock.store.upkeep.invariants import INVARIANTS
from penstock_executor.handlers import ROUTES
from penstock_executor.loops import fire_timers, reap_workers
from penstock_worker.claiming.claims import Claims
from penstock_worker.records.batches import Batches
from penstock_worker.records.executor_room import ExecutorRoom
from penstock_worker.records.slots import Slots
from tests.interleavings.broker import Fickle, Silent
from tests.interleavings.stage import Work
from tests.penstock.store.admission.desk import FINISH, Desk

HANDLERS: dict[str, Handler] = {route.queue: route.handle for route in ROUTES if not route.raw}
KEPT = "definition|catalog|namespace|concurrency_limit|legal_move|cluster|process|schedule|penstock_migration"
TABLES = f"""
select string_agg(format('delete from %I;', c.relname), ' ') from pg_class c
where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
    and c.relname !~ '^({KEPT})$'
"""
OPEN = "select id::text, status, task from execution where finished_at is null"
RUNNING = "select id, status, claim from execution where status in ('running', 'canceling') and claim is not null order by id"
LEFT = """
select (select count(*) from slot) as slots, (select count(*) from waiter) as waiters, (select count(*) from lane) as lanes,
    (select count(*) from live) as live, (select count(*) from claim) as claims
"""
VIOLATED = " union all ".join(
    f"select '{one.name}' as name, array({one.violations}) as violations" for one in INVARIANTS
)
"""What `penstock check` asks, in one statement."""
ROUNDS = 60


def soon() -> tenacity.AsyncRetrying:
    """Return a short backoff, for a hurry."""
    return backoff(first=0.002, max_wait=0.02)


class Scene(Desk):
    """The scene of races, and the executor's and worker's own code to race with."""

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
        """Handle a message as a replica of the executor does."""

        async def work(session: Session) -> None:
            async for attempt in soon():
                with attempt:
                    async with session.transaction() as tx:
                        await HANDLERS[queue](Batch(sorted(ids)), tx)

        return work

    def turns(self, turn: Callable[[Parts, Session], Awaitable[Any]]) -> Work:
        """Take a turn of a loop of the executor."""

        async def work(session: Session) -> None:
            async for attempt in soon():
                with attempt:
                    await turn(self.parts, session)

        return work

    def claims(self, ids: Sequence[UUID], worker: UUID | None = None, take: int = 100) -> Work:
        """Claim an envelope as a worker does; it comes again if that fails. Returns the ids that it got."""
        identity = Identity(worker or self.worker, "worker", "worker")

        async def work(session: Session) -> list[UUID]:
            async for attempt in soon():
                with attempt:
                    slots, room = Slots(take), ExecutorRoom({}, 0)
                    claims = Claims(session, identity, self.action, slots, room, Batches(slots, room), {})
                    answers = [claimed async for claimed in claims.claim("work.default", list(ids))]
            return [one.event.execution_id for claimed in answers for one in claimed.attempts]

        return work

    def finishes(self, ids: Sequence[UUID], status: str = "completed", attempt: int = 1) -> Work:
        """Finish attempts as a worker does. Returns the ids that it moved."""
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

    def cancels(self, ids: Sequence[UUID], *, by_hand: bool = False) -> Work:
        async def work(session: Session) -> None:
            async for attempt in soon():
                with attempt:
                    async with session.transaction() as tx:
                        await executions.cancel(tx, ids, "asked", by_hand=by_hand)

        return work

    def calls(self, sql: str, *args: Any) -> Work:
        async def work(session: Session) -> list[Row]:
            async for attempt in soon():
                with attempt:
                    return await session.fetch(sql, *args)
            raise AssertionError

        return work

    @property
    def known_definitions(self) -> list[int]:
        """Return the known definitions of actions."""
        return list(self._definitions.values())

    def action(self, ref: str) -> Any:
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
            where = namespaces.of("public", ref)
            self._spaces[ref] = (await namespaces.places(self.session, [where]))[where]
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
            claimed = await self.claims(ids)(self.session)
            if claimed:
                await self.finish(claimed)
        elif queue in HANDLERS:
            await self.handles(queue, ids)(self.session)

    async def play_out(self) -> None:
        """Let everything go on, without a race, until nothing is left to do."""
        for _ in range(ROUNDS):
            moved = await self.deliver() + await self._report()
            await reap_workers.turn(self.parts, self.session)
            outcome = await fire_timers.turn(self.parts, self.session)
            if not moved and outcome is not True:
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
        rows = await self.session.fetch(OPEN)
        assert not rows, f"open: {[tuple(row) for row in rows]}"
        [row] = await self.session.fetch(LEFT)
        assert (row["slots"], row["waiters"], row["lanes"], row["live"]) == (0, 0, 0, 0), dict(row)
        broken = [
            f"{row['name']}: {row['violations']}"
            for row in await self.session.fetch(VIOLATED)
            if row["violations"]
        ]
        assert not broken, broken
