"""Permits of takes: submits assign work to workers that wait at a gateway, and each execution reaches one of them once."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from penstock import Limit
from penstock.language.terms.ids import new_id
from penstock.service.heartbeat import Identity
from penstock_api.app import make_app
from penstock_api.backend import Backend
from penstock_api.work import take_permits
from penstock_api.work.remote_worker import RemoteWorker
from penstock_api.work.take import Take, claim_of
from penstock_api.work.take_permits import TakePermits
from tests.penstock_api.conftest import Api
from tests.penstock_api.routes.test_worker_protocol import Worker, key, remote, status, working

PERMITS = "select worker, queue, claim from permit where claim is not null and queue like '%' || $1"
PLACE = """
select p.* from namespace n, catalog c,
    place_alike(array[$1::uuid], n.id, c.definition_id, array['{}'], '{null}', 0::smallint, true) p
where n.name = 'public::' || replace($2, '.', '::') and c.ref = $2
"""
CUT = """
select pg_terminate_backend(l.pid) from pg_locks l join permit p
on l.locktype = 'advisory' and l.objsubid = 1 and l.granted and l.mode = 'ExclusiveLock'
    and (l.classid::bigint << 32) + l.objid::bigint = p.lock_key
"""


async def permits(api: Api, ref: str) -> list[Any]:
    return await api.house.rows(PERMITS, ref.replace(".", "-"))


async def until_permitted(api: Api, ref: str, count: int = 1) -> None:
    async with asyncio.timeout(20):
        while len(await permits(api, ref)) < count:
            await asyncio.sleep(0.005)


async def messages(api: Api) -> int:
    [row] = await api.house.rows("select case when is_called then last_value else 0 end from outbox_id_seq")
    return int(row[0])


def taking(worker: Worker, request: UUID | None = None, **more: Any) -> asyncio.Task[dict[str, Any]]:
    message = {"request": str(request or uuid4()), "slots": 1, "wait": 20.0, **more}
    return asyncio.create_task(worker.ok("take", message))


@asynccontextmanager
async def another_gateway(api: Api, worker: Worker) -> AsyncIterator[Worker]:
    """Yield the same worker as a caller of another gateway."""
    backend = Backend.of(api.house.client)
    elsewhere = httpx.ASGITransport(make_app(backend), raise_app_exceptions=False)
    headers = {"authorization": f"Bearer {api.secrets['worker']}"}
    async with httpx.AsyncClient(
        transport=elsewhere, base_url="http://penstock", headers=headers, timeout=30
    ) as caller:
        yield Worker(caller, worker.welcome)
    await backend.close()


async def test_start_is_assigned_to_a_take_that_waits(api: Api) -> None:
    ref, request = await remote(api), uuid4()
    async with working(api, ref) as worker:
        take = taking(worker, request)
        await until_permitted(api, ref)
        before = await messages(api)
        id = await api.house.client.start(ref, {"n": 7})
        [attempt] = (await take)["attempts"]
        assert (attempt["execution"], attempt["attempt"], attempt["parameters"]) == (str(id), 1, {"n": 7})
        assert await messages(api) == before, "no message was needed"
        [claim] = await api.house.rows("select id from claim where $1 = any (executions)", id)
        assert claim["id"] == claim_of(UUID(worker.welcome["worker"]), request)
        await worker.finish(attempt, result=14)
        assert await api.house.client.result(id, timeout=20) == 14
        moves = await api.house.rows("select new, actor from history where execution_id = $1 order by at", id)
        assert [move["new"] for move in moves] == ["requested", "scheduled", "running", "completed"]
        assert [move["actor"] for move in moves[2:]] == ["gateway:tester"] * 2
        assert not await permits(api, ref)


async def test_retry_and_promotion_are_assigned(api: Api) -> None:
    """A retry and a promotion also make work ready, and assign it as a submit does."""
    ref = await remote(api, limits=[Limit(1)], retry={"max_attempts": 2, "initial_delay": 0})
    async with working(api, ref) as worker:
        ids = [await api.house.client.start(ref, {"n": n}) for n in range(2)]
        [attempt] = await worker.take()
        end: dict[str, Any] = {"outcome": "failed", "error": {"type": "Broken", "message": "no"}}
        given = []
        for _ in ids:
            take = taking(worker)
            await until_permitted(api, ref)
            await worker.finish(attempt, **end)
            [attempt] = (await take)["attempts"]
            given.append(UUID(attempt["execution"]))
            [claim] = await api.house.rows(
                "select assigned from claim where $1 = any (executions)", given[-1]
            )
            assert claim["assigned"]
            end = {"outcome": "completed"}
        await worker.finish(attempt)
        assert sorted(given) == sorted(ids)
        for id in ids:
            await api.house.client.result(id, timeout=20)


async def test_lost_notification_is_looked_up(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TakePermits, "_heard", lambda *_: None)
    monkeypatch.setattr(take_permits, "RENEWAL_S", 0.1)
    ref = await remote(api)
    backend = Backend.of(api.house.client)
    other = Api(make_app(backend), api.house, api.secrets)
    async with working(other, ref) as worker:
        for n in range(3):
            take = taking(worker)
            await until_permitted(api, ref)
            id = await api.house.client.start(ref, {"n": n})
            [attempt] = (await take)["attempts"]
            assert attempt["execution"] == str(id)
            await worker.finish(attempt)
    await backend.close()


async def test_session_that_is_cut_is_opened_again(api: Api) -> None:
    """No permit outlives the session that listens for it, and the takes that wait get new ones."""
    ref = await remote(api)
    async with working(api, ref) as worker:
        for n in range(3):
            take = taking(worker)
            await until_permitted(api, ref)
            await api.house.rows(CUT)
            id = await api.house.client.start(ref, {"n": n})
            [attempt] = (await take)["attempts"]
            assert attempt["execution"] == str(id)
            assert await status(api, id) == ("running", 1)
            await worker.finish(attempt)
        take = taking(worker)
        await until_permitted(api, ref)
        await api.house.client.start(ref)
        [attempt] = (await take)["attempts"]
        await worker.finish(attempt)


async def test_take_that_ends_leaves_no_permit(api: Api) -> None:
    ref = await remote(api)
    async with working(api, ref) as worker:
        take = taking(worker, wait=0.3)
        await until_permitted(api, ref)
        assert (await take)["attempts"] == []
        assert not await permits(api, ref)
        id = await api.house.client.start(ref)
        assert await status(api, id) == ("scheduled", 0)
        await worker.finish(await worker.one())


async def test_permit_that_a_submit_has_locked_is_waited_for(api: Api) -> None:
    """The take is over while a transaction assigns work to it. Its answer has the work."""
    ref = await remote(api)
    async with working(api, ref) as worker:
        await api.house.client.start(ref)  # its namespace is made
        await worker.finish(await worker.one())
        take = taking(worker, wait=0.3)
        await until_permitted(api, ref)
        id = new_id()
        async with api.house.session.transaction() as tx:
            await tx.fetch(PLACE, id, ref)
            await asyncio.sleep(0.6)
            assert not take.done()
        [attempt] = (await take)["attempts"]
        assert attempt["execution"] == str(id)
        await worker.finish(attempt)


async def test_assignment_to_a_caller_that_has_gone_is_handed_back(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TakePermits, "_heard", lambda *_: None)
    ref = await remote(api)
    async with working(api, ref) as worker, another_gateway(api, worker) as elsewhere:
        take = taking(elsewhere)
        await until_permitted(api, ref)
        id = await api.house.client.start(ref)
        assert await status(api, id) == ("running", 1)
        take.cancel()
        attempt = await worker.one()
        assert attempt["execution"] == str(id)
        await worker.finish(attempt)
        assert await api.house.client.result(id, timeout=20) is None


async def test_take_sent_again_finds_its_assignment(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first gateway never hears of it: the second one finds it by the claim id of the take."""
    monkeypatch.setattr(TakePermits, "_heard", lambda *_: None)
    ref, request = await remote(api), uuid4()
    async with working(api, ref) as worker, another_gateway(api, worker) as elsewhere:
        take = taking(elsewhere, request)
        await until_permitted(api, ref)
        id = await api.house.client.start(ref)
        [attempt] = (await taking(worker, request, again=True))["attempts"]
        assert attempt["execution"] == str(id)
        assert (await worker.finish(attempt)).json() == {"lost": []}
        take.cancel()


async def test_take_sent_again_to_its_gateway_keeps_its_assignment(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway notices only later that the first caller has gone, and does not take the attempt back from the second."""
    monkeypatch.setattr(TakePermits, "_heard", lambda *_: None)
    ref, request = await remote(api), uuid4()
    async with working(api, ref) as worker, another_gateway(api, worker) as elsewhere:
        take = taking(elsewhere, request)
        await until_permitted(api, ref)
        id = await api.house.client.start(ref)
        take.cancel()
        [attempt] = (await taking(elsewhere, request, again=True))["attempts"]
        assert attempt["execution"] == str(id)
        await asyncio.sleep(0.3)
        assert await status(api, id) == ("running", attempt["attempt"])
        assert (await worker.finish(attempt)).json() == {"lost": []}


async def test_take_at_another_gateway_moves_the_permit(api: Api) -> None:
    ref, request = await remote(api), uuid4()
    async with working(api, ref) as worker, another_gateway(api, worker) as elsewhere:
        left = taking(elsewhere, request)
        await until_permitted(api, ref)
        take = taking(worker, request, again=True)
        async with asyncio.timeout(20):
            while len(await api.house.rows("select distinct holder from permit where claim is not null")) < 1:
                await asyncio.sleep(0.005)
        await asyncio.sleep(0.1)
        assert len(await permits(api, ref)) == 1
        id = await api.house.client.start(ref)
        [attempt] = (await take)["attempts"]
        assert attempt["execution"] == str(id)
        await worker.finish(attempt)
        left.cancel()


async def test_permits_do_not_grow_with_the_workers_that_wait(api: Api) -> None:
    ref = await remote(api)
    async with contextlib.AsyncExitStack() as stack:
        workers = [await stack.enter_async_context(working(api, ref)) for _ in range(20)]
        takes = {taking(worker): worker for worker in workers}
        await until_permitted(api, ref, take_permits.MOST)
        await asyncio.sleep(0.2)
        assert len(await permits(api, ref)) == take_permits.MOST
        ids = [await api.house.client.start(ref) for _ in range(20)]
        given = []
        for take, worker in takes.items():
            [attempt] = (await take)["attempts"]
            given.append(UUID(attempt["execution"]))
            await worker.finish(attempt)
        assert sorted(given) == sorted(ids)


@pytest.mark.parametrize("which", ["tenants", "cordoned"])
async def test_worker_that_may_not_take_everything_gets_no_permit(api: Api, which: str) -> None:
    ref = await remote(api)
    token = "worker"
    if which == "tenants":
        token = "worker of theirs"
        await api.token(token, "work", tenants=("public", "theirs"))
    async with working(api, ref, token) as worker:
        if which == "cordoned":
            await api.house.rows(
                "update process set state = 'cordoned' where id = $1 returning 1",
                UUID(worker.welcome["worker"]),
            )
        take = taking(worker, wait=0.5)
        await asyncio.sleep(0.3)
        assert not await permits(api, ref)
        await take


@pytest.mark.parametrize("seed", range(3))
async def test_random_play_gives_each_execution_once(
    api: Api, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers of one to three slots take work at two gateways, give up takes, send them again elsewhere, and lose answers, while
    notifications are lost and sessions are cut. No worker holds more than its slots, and none is given an attempt twice but
    by a take that it has sent again."""
    chance = random.Random(seed)
    hear = TakePermits._heard

    def heard(self: TakePermits, text: str) -> None:
        if chance.random() < 0.8:
            hear(self, text)

    monkeypatch.setattr(TakePermits, "_heard", heard)
    monkeypatch.setattr(take_permits, "RENEWAL_S", 0.2)
    ref = await remote(api)
    given: Counter[tuple[str, int]] = Counter()
    stop = asyncio.Event()

    async def ask(at: Worker, request: UUID, slots: int, *, again: bool) -> list[dict[str, Any]] | None:
        """Send a take. Return None if its caller gave up, or the answer was lost."""
        call = taking(at, request, slots=slots, wait=chance.choice([0.0, 0.05, 0.5]), again=again)
        if chance.random() < 0.15:
            await asyncio.wait({call}, timeout=chance.random() * 0.05)
            call.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await call
            return None
        attempts: list[dict[str, Any]] = (await call)["attempts"]
        return None if chance.random() < 0.1 else attempts

    async def work(gateways: list[Worker], slots: int) -> None:
        running: set[asyncio.Task[None]] = set()
        holding: list[dict[str, Any]] = []

        async def beat() -> None:
            while True:
                await chance.choice(gateways).ok("beat", {"holding": list(holding)})
                await asyncio.sleep(6.0)  # what two in a row do not name is lost

        async def run(attempt: dict[str, Any]) -> None:
            holding.append(key(attempt))
            await asyncio.sleep(chance.random() * 0.02)
            answer = await chance.choice(gateways).finish(attempt)
            holding.remove(key(attempt))
            assert answer.json() == {"lost": []}

        beating = asyncio.create_task(beat())
        beats.append(beating)
        while not stop.is_set():
            if len(running) == slots:
                ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.gather(*ended)
            request, again, free = uuid4(), False, slots - len(running)
            while (attempts := await ask(chance.choice(gateways), request, free, again=again)) is None:
                again = True
            assert len(attempts) <= free
            for attempt in attempts:
                given[attempt["execution"], attempt["attempt"]] += 1
                running.add(asyncio.create_task(run(attempt)))
        await asyncio.gather(*running)
        beats.remove(beating)
        beating.cancel()

    tasks: list[asyncio.Task[None]] = []
    beats: list[asyncio.Task[None]] = []
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(4):
            worker = await stack.enter_async_context(working(api, ref))
            elsewhere = await stack.enter_async_context(another_gateway(api, worker))
            tasks.append(asyncio.create_task(work([worker, elsewhere], chance.randint(1, 3))))
        ids = []
        for n in range(120):
            ids.append(await api.house.client.start(ref, {"n": n}))
            if chance.random() < 0.5:
                await asyncio.sleep(chance.random() * 0.03)
            if chance.random() < 0.05:
                await api.house.rows(CUT)
        async with asyncio.timeout(60):
            for id in ids:
                result = asyncio.ensure_future(api.house.client.result(id, timeout=60))
                done, _ = await asyncio.wait({result, *tasks, *beats}, return_when=asyncio.FIRST_COMPLETED)
                for task in done - {result}:
                    task.result()  # a worker has failed
                await result
        stop.set()
        await asyncio.gather(*tasks)
    assert set(given.values()) == {1}
    rows = await api.house.rows("select attempt, failures, recoveries from archive where id = any ($1)", ids)
    rows += await api.house.rows(
        "select attempt, failures, recoveries from execution where id = any ($1)", ids
    )
    assert len(rows) == len(ids)
    assert {(row["failures"], row["recoveries"]) for row in rows} == {(0, 0)}
    await api.house.sound()


async def test_takes_in_their_first_half_get_permits_first() -> None:
    worker = RemoteWorker(Identity(new_id(), "worker", "tester", ["default"], []), "token", None)
    now = time.monotonic()
    takes = [Take(worker, new_id(), 1, now + ages_in) for ages_in in (-1000.0, 1000.0, -1.0, 2000.0)]
    old, young, aged, newest = takes
    assert list(take_permits.young_first(takes)) == [young, newest, old, aged]
