"""Work is taken back from processes that are gone: the order of its locks, and what such a process had leased."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from uuid import UUID

import pytest
from pydantic import SecretStr

from penstock import Limit
from penstock.language.terms.ids import new_id
from penstock.messaging.outbox import Publisher
from penstock.messaging.relay import relay
from penstock.messaging.supervision import Supervisor
from penstock.messaging.transports import Message
from penstock.service.assembly import Parts
from penstock.settings import Settings
from penstock.store.session.database import Database
from penstock_executor.loops import reap_workers
from tests.interleavings.broker import Silent
from tests.penstock.store.admission.desk import Desk

LIMITS = (Limit(1, ref="shop.one", scope="shop.charge"), Limit(1, ref="shop.other", scope="shop.refund"))
LOCKED = "select key_lock(((e.keys)[1].limit_id, (e.keys)[1].group_value)::limit_key) from execution e where id = $1"
LOST = "update process set beat_at = beat_at - make_interval(hours => $2) where id = $1"


@pytest.fixture
async def home(database: str) -> AsyncIterator[Database]:
    made = Database(Settings(database_url=SecretStr(database)), role="test")
    yield made
    await made.close()


async def blocked(desk: Desk, count: int) -> None:
    """Wait until so many connections wait for a lock, or one of them has gone on without."""
    async with asyncio.timeout(10):
        while True:
            [[waiting]] = await desk.session.fetch(
                "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
            )
            if waiting >= count:
                return
            await asyncio.sleep(0.01)


async def test_taking_back_from_two_workers_does_not_deadlock_with_scheduling(home: Database) -> None:
    desk = await Desk(home).open(*LIMITS)
    running: list[tuple[int, UUID, UUID]] = []
    for ref in ("shop.charge", "shop.refund"):
        await desk.hire("shop.charge", "shop.refund")
        [id] = await desk.start(1, ref)
        await desk.claim([id])
        [[lock]] = await desk.session.fetch(LOCKED, id)
        running.append((lock, desk.worker, id))
    (_, low, low_id), (_, high, _) = sorted(running)
    await desk.hire("shop.charge", "shop.refund")
    await desk.session.fetch(LOST, high, 2)  # is taken back first
    await desk.session.fetch(LOST, low, 1)
    coming = sorted(await desk.request(1, "shop.charge") + await desk.request(1, "shop.refund"))

    parts = Parts(home_settings(home), home, Silent(), Publisher(Silent(), home), Supervisor())

    async def reap() -> None:
        session = home.session()
        while await reap_workers.turn(parts, session):
            pass

    async with home.session().transaction() as tx:  # holds up the second of the two
        await tx.fetch("select from execution where id = $1 for update", low_id)
        reaping = asyncio.create_task(reap())
        await blocked(desk, 1)
        scheduling = asyncio.create_task(desk.admit(coming, home.session()))
        await asyncio.wait([scheduling], timeout=0.5)
    await asyncio.gather(reaping, scheduling)
    assert await desk.statuses(coming) == ["queued", "queued"] or "scheduled" in await desk.statuses(coming)
    await desk.sound()


def home_settings(home: Database) -> Settings:
    return home.session().settings


async def test_outbox_rows_of_a_gone_process_are_given_away(
    home: Database,
) -> None:
    session, gone, living = home.session(), new_id(), new_id()
    for id, hours in ((gone, 1), (living, 0)):
        await session.fetch("insert into process (id, kind, name) values ($1, 'executor', 'x')", id)
        await session.fetch(LOST, id, hours)
    for holder in (gone, living):
        await session.fetch(
            "insert into outbox (queue, ids, due_at, holder) values ('execution.requested', $1, now() + interval '1 hour', $2)",
            [new_id()],
            holder,
        )
    parts = Parts(home_settings(home), home, Silent(), Publisher(Silent(), home), Supervisor())
    assert await reap_workers.turn(parts, session)
    rows = await session.fetch("select holder from outbox where due_at > clock_timestamp()")
    assert [row["holder"] for row in rows] == [living]


async def test_rows_that_a_relay_never_published_go_to_another(
    home: Database,
) -> None:
    session = home.session()
    await session.fetch("insert into outbox (queue, ids) values ('execution.requested', $1)", [new_id()])
    broker = Forgetful()
    with pytest.raises(asyncio.CancelledError):
        await relay(broker, session, 0.0)
    await session.fetch("update outbox set due_at = due_at - interval '1 minute'")
    assert await relay(broker, session, 0.0) == 1


class Forgetful(Silent):
    """A transport that stops the first publisher, and takes the messages of the next ones."""

    def __init__(self) -> None:
        self._asked = False

    async def publish(self, messages: Sequence[Message]) -> list[bool]:
        if not self._asked:
            self._asked = True
            raise asyncio.CancelledError
        return [True] * len(messages)
