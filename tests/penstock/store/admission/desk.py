"""Admission by hand: a database with actions under limits, a worker that is only a row, and connections to race on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

import orjson

from penstock import Limit, action
from penstock.language.loading import Definitions
from penstock.language.terms.ids import new_id
from penstock.operate.apply import apply
from penstock.operate.check import check
from penstock.store.admission import namespaces
from penstock.store.session.database import Database, Row, Session, Transaction

ROUTE = "default"
REQUEST = """
select * from request_executions($1::uuid[], $2::integer[], $3::integer[], $4::text[], null, null, $5::smallint[],
    array_fill(clock_timestamp(), array[cardinality($1)]), $6::uuid[], $7::text[], null, false)
"""
SUBMIT = """
select messages from submit_executions($1::uuid[], $2::integer[], $3::integer[], $4::text[], null, null, $5::smallint[],
    null, null, null, null, null, true)
"""
CLAIM = """
select one.execution_id
from claim_executions($1, $2, $3::uuid[], 1000, $4, $5::integer[], '{}'::integer[]), unnest(claimed) one
"""
FINISH = """
select * from finish_attempts($1, $2::uuid[], $3::smallint[], $4::text[], $5::text[],
    array(select case s when 'failed' then '{"type": "Broken"}' end from unnest($4::text[]) s), $6::float8[], null, null,
    '{}'::uuid[], '{}'::uuid[])
"""
REGISTER = """
insert into process (id, kind, name, routes, actions) values ($1, 'worker', $2, $3::text[], $4::text[]) returning id
"""


@action(pack="shop")
async def charge(customer: Any = None, region: Any = None) -> None: ...


@action(pack="shop")
async def refund(customer: Any = None, region: Any = None) -> None: ...


@action(pack="mail")
async def send(customer: Any = None) -> None: ...


ACTIONS = (charge, refund, send)


class Desk:
    """The steps of admission, one by one, for tests. Each step is a transaction, on the given session or on the desk's own."""

    def __init__(self, home: Database) -> None:
        self.database = home
        self.session = home.session()
        self.worker = new_id()
        self._definitions: dict[str, int] = {}
        self._spaces: dict[str, int] = {}

    async def open(self, *limits: Limit, worker: bool = True) -> Desk:
        if worker:
            await self.hire(*(a.ref for a in ACTIONS))
        await self.apply(*ACTIONS, *limits)
        return self

    async def hire(self, *actions: str, route: str = ROUTE) -> UUID:
        """A worker registers."""
        self.worker = new_id()
        await self.session.fetch(REGISTER, self.worker, "worker", [route], list(actions))
        return self.worker

    async def dismiss(self, worker: UUID) -> None:
        await self.session.fetch("delete from process where id = $1", worker)

    async def apply(self, *definitions: Any) -> None:
        await apply(self.session, Definitions(definitions).documents())
        for row in await self.session.fetch("select ref, definition_id from catalog where kind = 'action'"):
            self._definitions[row["ref"]] = row["definition_id"]
            where = namespaces.of("public", row["ref"])
            self._spaces[row["ref"]] = (await namespaces.places(self.session, [where]))[where]

    async def request(
        self, count: int = 1, ref: str = "shop.charge", priority: int = 0, **params: Any
    ) -> list[UUID]:
        """Executions that had to wait for an instant, which has come, in the order in which they became ready: they are
        requested, whether a limit covers them or not."""
        ids = [new_id() for _ in range(count)]
        await self.session.fetch(
            REQUEST,
            ids,
            [self._spaces[ref]] * count,
            [self._definitions[ref]] * count,
            [orjson.dumps(params).decode()] * count,
            [priority] * count,
            [None] * count,
            [None] * count,
        )
        await self.session.fetch("delete from timer where execution_id = any ($1::uuid[])", ids)
        await self.session.fetch("select * from unnest(stage('execution.requested', $1::uuid[], 50))", ids)
        return ids

    async def submit_group(
        self,
        params: Sequence[dict[str, Any]],
        ref: str = "shop.charge",
        priority: int = 0,
        session: Session | None = None,
    ) -> tuple[list[UUID], list[UUID]]:
        """Submit these together as a client does, in a transaction of their own. Returns the ids, and those of them that an
        executor is asked to schedule."""
        ids = [new_id() for _ in params]
        [[messages]] = await (session or self.session).fetch(
            SUBMIT,
            ids,
            [self._spaces[ref]] * len(ids),
            [self._definitions[ref]] * len(ids),
            [orjson.dumps(one).decode() for one in params],
            [priority] * len(ids),
        )
        asked = [
            id for message in messages if message["queue"] == "execution.requested" for id in message["ids"]
        ]
        return ids, asked

    async def admit(self, ids: Sequence[UUID], session: Session | Transaction | None = None) -> None:
        """Handle `execution.requested` as the executor does."""
        await (session or self.session).fetch("select * from schedule_executions($1::uuid[])", sorted(ids))

    async def start(self, count: int = 1, ref: str = "shop.charge", **more: Any) -> list[UUID]:
        """Requested and, each in a transaction of its own, admitted or put in line."""
        ids = await self.request(count, ref, **more)
        for id in ids:
            await self.admit([id])
        return ids

    async def claim(self, ids: Sequence[UUID], session: Session | Transaction | None = None) -> list[UUID]:
        rows = await (session or self.session).fetch(
            CLAIM, self.worker, new_id(), list(ids), f"work.{ROUTE}", list(self._definitions.values())
        )
        return [row["execution_id"] for row in rows]

    async def finish(
        self,
        ids: Sequence[UUID],
        status: str = "completed",
        delay: float = 0,
        session: Session | Transaction | None = None,
        asked: str = '{"prompt": "?"}',
    ) -> list[Row]:
        """End attempts as the worker does. `asked` is the question of those that wait."""
        ids = sorted(ids)
        rows = await self.session.fetch("select id, attempt from execution where id = any($1::uuid[])", ids)
        attempts = {row["id"]: row["attempt"] for row in rows}
        return await (session or self.session).fetch(
            FINISH,
            self.worker,
            ids,
            [attempts[id] for id in ids],
            [status] * len(ids),
            [asked if status == "waiting" else None] * len(ids),
            [delay] * len(ids),
        )

    async def run(self, ids: Sequence[UUID], status: str = "completed", delay: float = 0) -> None:
        """Claim these and finish them."""
        assert set(await self.claim(ids)) == set(ids)
        await self.finish(ids, status, delay)

    async def retry(self, ids: Sequence[UUID]) -> None:
        """Wait until these retries are due, and schedule them as their timer would."""
        while await self.session.fetch(
            "select from execution where id = any($1::uuid[]) and not_before > clock_timestamp()", list(ids)
        ):
            await asyncio.sleep(0.02)
        await self.admit(ids)

    async def cancel(self, ids: Sequence[UUID], session: Session | Transaction | None = None) -> None:
        await (session or self.session).fetch(
            "select * from cancel_executions($1::uuid[], 'asked')", sorted(ids)
        )

    async def timers(self) -> None:
        while await self.session.fetch("select 1 from fire_timers(100) where fired > 0"):
            await asyncio.sleep(0)

    async def tidy(self) -> None:
        """Take turns of the timers' loop until there is nothing to do within a second."""
        await self.session.fetch("select follow_clock()")
        await self.session.fetch(
            "update wake set at = clock_timestamp() where at < clock_timestamp() + interval '1 second' returning 1"
        )
        while await self.session.fetch("select from wake_keys(100) where woken") or await self.session.fetch(
            "select from regroup(2) where regrouped"
        ):
            await asyncio.sleep(0)

    async def statuses(self, ids: Sequence[UUID]) -> list[str]:
        rows = await self.session.fetch("select id, status from execution where id = any($1::uuid[])", ids)
        found = {row["id"]: row["status"] for row in rows}
        return [found[id] for id in ids]

    async def scheduled(self, ids: Sequence[UUID]) -> list[int]:
        """Return the positions of those that have a slot and wait for a worker."""
        return [n for n, status in enumerate(await self.statuses(ids)) if status == "scheduled"]

    async def slots(self) -> dict[tuple[int, str], int]:
        rows = await self.session.fetch(
            "select limit_id, group_value, count(*) from slot group by 1, 2 order by 1, 2"
        )
        return {(row[0], row[1]): row[2] for row in rows}

    async def reasons(self, ids: Sequence[UUID]) -> list[str]:
        rows = await self.session.fetch("select id, reason from execution where id = any($1::uuid[])", ids)
        found = {row["id"]: row["reason"] for row in rows}
        return [found[id] for id in ids]

    async def sound(self) -> None:
        """No invariant is violated."""
        broken = [finding for finding in await check(self.session) if finding.violations]
        assert not broken, broken


async def drained(desk: Desk, ids: Sequence[UUID]) -> list[int]:
    """Run all, as they are let in; gives the order."""
    order: list[int] = []
    while now := await desk.scheduled(ids):
        order += now
        await desk.run([ids[n] for n in now])
        await desk.tidy()
    return order


async def later(desk: Desk, seconds: float) -> None:
    """So much time passes."""
    past = "make_interval(secs => $1)"
    for statement in (
        f"update admission set admitted_at = admitted_at - {past}, since = since - {past} returning 1",
        f"update slot set admitted_at = admitted_at - {past} returning 1",
        f"update history set at = at - {past} returning 1",
        f"update wake set at = at - {past} returning 1",
        f"update cluster set seen_at = seen_at - {past} returning 1",
    ):
        await desk.session.fetch(statement, seconds)


async def blocked(desk: Desk) -> None:
    """Wait until a connection waits for a lock. Looks on a session of its own: that of the desk may be what waits."""
    session = desk.database.session()
    async with asyncio.timeout(10):
        while not await session.fetch(
            "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        ):
            await asyncio.sleep(0.005)


async def racing(
    desk: Desk, first: Callable[[Transaction], Awaitable[object]], second: Awaitable[object]
) -> None:
    """Run `first` in a transaction; commit it when `second`, on another connection, waits for it."""
    async with desk.database.session().transaction() as tx:
        await first(tx)
        task = asyncio.ensure_future(second)
        await blocked(desk)
    await task
