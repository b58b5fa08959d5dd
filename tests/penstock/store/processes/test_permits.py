"""Permits and the submits that take them: with two connections, of which one holds its transaction open."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import asyncpg
import orjson
import pytest

from penstock.language.terms.ids import new_id
from penstock.store.executions import attempts, executions, plain_executions
from penstock.store.executions.executions import Submission
from penstock.store.processes import heartbeats, permits
from penstock.store.session.database import Session, Transaction
from tests.penstock.store.race_scene import REAP, Scene

QUEUE, CHANNEL = "work.default", "secret"
WORKER, OTHER = UUID(int=7), UUID(int=8)
STANDS = "select status, attempt, claim from execution where id = $1"
LOCKED = """select from pg_locks l join pg_database d on d.oid = l.database
where l.locktype = 'advisory' and d.datname = current_database()"""
"""The advisory locks of this database. Other tests hold some in theirs, in the same server."""


@pytest.fixture
async def scene(scene: Scene) -> Scene:
    await scene.one.fetch(
        "insert into catalog (kind, ref, definition_id) values ('action', 'a.b', $1)", scene.definition
    )
    return scene


@pytest.fixture
async def alive(scene: Scene) -> AsyncIterator[asyncpg.Connection[Any]]:
    """The session of a worker, which holds its lock."""
    connection = await scene.database.connect()
    await register(scene, connection, WORKER)
    yield connection
    connection.terminate()


async def register(scene: Scene, connection: asyncpg.Connection[Any], worker: UUID) -> None:
    identity = heartbeats.Identity(worker, "worker", str(worker), ["default"], ["a.b"])
    lock = await heartbeats.hold_lock(connection, worker)
    await heartbeats.register(scene.one, identity, lock)


async def renew(scene: Scene, worker: UUID = WORKER, *, expected: int = 0, most: int = 1, **more: Any) -> Any:
    of = {"behind": False, **more}
    return await permits.renew(
        scene.one, worker, QUEUE, CHANNEL, [scene.definition], expected=expected, limit=most, **of
    )


def submission(scene: Scene, **more: Any) -> Submission:
    return Submission(new_id(), scene.namespace, scene.definition, '{"n": 1}', "public", **more)


async def submit(scene: Scene, session: Session | None = None) -> UUID:
    one = submission(scene)
    async with (session or scene.other).transaction() as tx:
        await plain_executions.submit(tx, [one])
    return one.id


async def place(scene: Scene, tx: Transaction, params: str = "{}") -> tuple[UUID, list[Any]]:
    """Submit in a transaction that stays open. Gives the id and the messages."""
    id = new_id()
    arguments = ([id], scene.namespace, scene.definition, [params], [None], 0, True)
    [row] = await tx.fetch(plain_executions.PLACE_ALIKE, *arguments)
    return id, row["messages"]


async def stands(scene: Scene, id: UUID) -> tuple[str, int, UUID | None]:
    [row] = await scene.watcher.fetch(STANDS, id)
    return tuple(row)


async def count(scene: Scene) -> int:
    return int((await scene.watcher.fetch("select count(*) from permit"))[0][0])


async def test_permit_gives_execution_to_its_worker(scene: Scene, alive: Any) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    await alive.add_listener(CHANNEL, lambda *notice: heard.put_nowait(notice[3]))
    assert await renew(scene) == (0, 1)
    id = await submit(scene)
    assert await stands(scene, id) == ("running", 1, WORKER)
    async with asyncio.timeout(10):
        message = orjson.loads(await heard.get())
    assert message["claimed"] == [
        [str(id), 1, 0, "public::a::b", scene.definition, 0, '{"n": 1}', *[None] * 6]
    ]
    claims, horizon = await attempts.assigned(scene.one, WORKER, 0.0)
    assert message["at"] < horizon
    [(claim, (queue, rows))] = claims.items()
    assert (claim, queue, [row.execution_id for row in rows]) == (UUID(message["claim"]), QUEUE, [id])
    assert not (await attempts.assigned(scene.one, WORKER, 0.0, [claim])).claims
    assert message["queue"] == QUEUE
    assert await count(scene) == 0
    assert not await scene.one.fetch("select from outbox")
    assert await stands(scene, await submit(scene)) == ("scheduled", 0, None)


async def test_long_parameters_are_not_in_the_notification(scene: Scene, alive: Any) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    await alive.add_listener(CHANNEL, lambda *notice: heard.put_nowait(notice[3]))
    await renew(scene)
    async with scene.other.transaction() as tx:
        id, _ = await place(scene, tx, orjson.dumps({"text": "é" * 5000}).decode())
    async with asyncio.timeout(10):
        message = orjson.loads(await heard.get())
    assert list(message) == ["claim"]
    assert [row.execution_id for row in await attempts.claimed(scene.one, UUID(message["claim"]))] == [id]


async def test_two_submits_share_no_permit(scene: Scene, alive: Any) -> None:
    await renew(scene)
    async with scene.one.transaction() as tx:
        first, _ = await place(scene, tx)
        second = await submit(scene)
    assert await stands(scene, first) == ("running", 1, WORKER)
    assert await stands(scene, second) == ("scheduled", 0, None)


async def test_submit_that_rolls_back_leaves_permit(scene: Scene, alive: Any) -> None:
    await renew(scene)
    with contextlib.suppress(ZeroDivisionError):
        async with scene.one.transaction() as tx:
            await place(scene, tx)
            raise ZeroDivisionError
    assert await count(scene) == 1
    assert await stands(scene, await submit(scene)) == ("running", 1, WORKER)


async def test_three_open_submits_notify_and_the_fourth_does_after_its_commit(
    scene: Scene, alive: Any
) -> None:
    """Each of the three commits may have to wait for the disk of the others."""
    heard: asyncio.Queue[str] = asyncio.Queue()
    await alive.add_listener(CHANNEL, lambda *notice: heard.put_nowait(notice[3]))
    await renew(scene, most=4)
    sessions = [scene.one, scene.other, *(scene.database.session() for _ in range(2))]
    async with contextlib.AsyncExitStack() as stack:
        placed = [
            await place(scene, await stack.enter_async_context(session.transaction())) for session in sessions
        ]
    assert [messages for _, messages in placed[:3]] == [[]] * 3
    [message] = placed[3][1]
    assert (message[0], message[1]) == (0, f"assigned.{WORKER}")
    async with asyncio.timeout(10):
        told = {orjson.loads(await heard.get())["claimed"][0][0] for _ in range(3)}
    assert told == {str(id) for id, _ in placed[:3]}


async def test_oldest_permits_are_used_first(scene: Scene, alive: Any) -> None:
    second = await scene.database.connect()
    await register(scene, second, OTHER)
    await renew(scene, WORKER)
    await renew(scene, OTHER)
    assert [(await stands(scene, await submit(scene)))[2] for _ in range(2)] == [WORKER, OTHER]
    second.terminate()


async def test_worker_whose_session_ended_is_assigned_nothing(scene: Scene, alive: Any) -> None:
    await renew(scene)
    await alive.close()
    async with asyncio.timeout(10):
        while await scene.watcher.fetch(LOCKED):
            await asyncio.sleep(0.01)
    assert await stands(scene, await submit(scene)) == ("scheduled", 0, None)


async def test_look_at_a_lock_is_no_sign_of_life(scene: Scene, alive: Any) -> None:
    await renew(scene)
    await alive.close()
    async with scene.one.transaction() as tx:
        async with asyncio.timeout(10):
            while (await stands_of(await place(scene, tx), tx)) == "running":
                await asyncio.sleep(0.01)
        [[held, _]] = await scene.other.fetch("select held, witness from note_locks()")
    assert held == []


async def stands_of(placed: tuple[UUID, list[Any]], tx: Transaction) -> str:
    return str((await tx.fetch("select status from execution where id = $1", placed[0]))[0][0])


@pytest.mark.parametrize("state", ["cordoned", "draining"])
async def test_worker_that_takes_no_work_is_assigned_nothing(scene: Scene, alive: Any, state: str) -> None:
    await renew(scene)
    await heartbeats.set_state(scene.one, WORKER, state)
    assert await stands(scene, await submit(scene)) == ("scheduled", 0, None)
    assert await renew(scene, expected=1) == (1, 0)


async def test_permit_is_valid_for_five_seconds(scene: Scene, alive: Any) -> None:
    await renew(scene)
    await scene.one.fetch("update permit set at = at - interval '5 s'")
    assert await stands(scene, await submit(scene)) == ("scheduled", 0, None)
    assert await renew(scene, expected=1) == (1, 1)
    assert await stands(scene, await submit(scene)) == ("running", 1, WORKER)


async def test_submit_is_assigned_and_announced(scene: Scene, alive: Any) -> None:
    """The guard of the plain case refuses it, and the general function assigns it."""
    await renew(scene)
    await scene.one.fetch("update cluster set announced = '{running}', subscribed = '{running,completed}'")
    id = await submit(scene)
    assert await stands(scene, id) == ("running", 1, WORKER)
    assert [tuple(row) for row in await scene.one.fetch("select queue, ids from outbox")] == [
        ("execution.status.running", [id])
    ]
    moves = await scene.one.fetch("select execution_id, status, attempt from subscribed_move")
    assert [tuple(row) for row in moves] == [(id, "running", 1)]


async def test_submit_in_a_callers_transaction_is_not_assigned(scene: Scene, alive: Any) -> None:
    await renew(scene)
    one = submission(scene)
    async with scene.one.transaction() as tx:
        await tx.fetch("select 1")
        await executions.submit(tx, [one])
    assert await stands(scene, one.id) == ("scheduled", 0, None)
    assert await count(scene) == 1


async def test_renewal_counts_permits_in_the_hands_of_submits(scene: Scene, alive: Any) -> None:
    assert await renew(scene, most=3) == (0, 3)
    async with scene.other.transaction() as tx:
        await place(scene, tx)
        assert await renew(scene, expected=3, most=3) == (2, 2)
    assert await count(scene) == 2
    assert await renew(scene, expected=2, most=0) == (2, 0)


async def test_permits_wait_for_messages_of_their_route(scene: Scene, alive: Any) -> None:
    waiting = await submit(scene)
    assert await stands(scene, waiting) == ("scheduled", 0, None)
    assert await renew(scene, behind=True) == (0, 0)
    await scene.one.fetch("delete from outbox")
    assert await renew(scene, behind=True) == (0, 1)


async def test_withdrawal_waits_for_submit_that_took_a_permit(scene: Scene, alive: Any) -> None:
    await renew(scene, most=2)
    async with scene.one.transaction() as tx:
        id, _ = await place(scene, tx)
        assert await permits.withdraw(scene.other, WORKER, QUEUE, 5) == 1
        withdrawal = asyncio.create_task(permits.withdraw_all(scene.other, WORKER))
        await scene.blocked()
    await withdrawal
    [(_, [row])] = (await attempts.assigned(scene.one, WORKER, 0.0)).claims.values()
    assert row.execution_id == id
    assert await count(scene) == 0


async def test_reaping_waits_for_submit_that_took_a_permit(scene: Scene, alive: Any) -> None:
    """The submit took the permit before the worker was taken for dead, and commits after that."""
    await renew(scene)
    async with scene.one.transaction() as tx:
        id, _ = await place(scene, tx)
        await scene.watcher.fetch("update process set beat_at = beat_at - interval '1 hour'")
        await scene.watcher.fetch("update cluster set resumed_at = '-infinity'")
        reaping = asyncio.create_task(scene.other.fetch(REAP, 60.0))
        await scene.blocked()
    [row] = await reaping
    assert row["moved"] == [id]
    status, attempt, _ = await stands(scene, id)
    assert (status, attempt) in (("requested", 1), ("scheduled", 1))
    assert not await scene.one.fetch("select from claim")


async def test_worker_that_leaves_sees_its_last_assignment(scene: Scene, alive: Any) -> None:
    await renew(scene)
    async with scene.one.transaction() as tx:
        await place(scene, tx)
        leaving = asyncio.create_task(heartbeats.leave(scene.other, WORKER))
        await scene.blocked()
    await leaving
    [row] = await scene.one.fetch("select beat_at = '-infinity' as left from process")
    assert row["left"], "it left with work in hand, and is swept at once"
