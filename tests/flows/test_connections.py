"""The number of sessions that the services have with PostgreSQL, and their conduct where it gives them no more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr

from penstock import Client
from penstock.store.session import connection_pool
from penstock.store.session.database import FEWEST
from tests.flows import inside, shop
from tests.flows.installation import AS_USED, Installation
from tests.servers import brokers, databases

SESSIONS = """
select count(*) filter (where application_name like 'executor:%') as executor,
    count(*) filter (where application_name like 'worker:%') as worker
from pg_stat_activity where datname = current_database()
"""
BY_ROLE = (
    "select usename, count(*) as sessions from pg_stat_activity where usename = any($1) group by usename"
)


async def _work(house: Installation, count: int) -> None:
    ids = await house.client.start_many("shop.count", [{"words": "a b"}] * count)
    assert [await house.client.result(id, timeout=60) for id in ids] == [2] * count


async def test_an_idle_executor_has_six_sessions_at_most_and_an_idle_worker_four(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_pool, "UNUSED", 0.5)
    await house.start(*shop.ALL)
    await _work(house, 50)
    [peaks] = await house.rows(SESSIONS)
    assert peaks["executor"] <= house.settings().most_connections <= 6
    await house.until(
        f"select 1 from ({SESSIONS}) s where executor between 2 and 6 and worker between 2 and 4"
    )


async def test_a_server_that_gives_each_service_the_fewest_sessions_gets_the_work_done(
    house: Installation, database: str
) -> None:
    """One for the heartbeat, and one for all else, which listens too where there is no broker."""
    async with databases.limited(database, FEWEST) as first, databases.limited(database, FEWEST) as other:
        await house.apply(*shop.ALL)
        stops = [
            await house.executor(database_url=SecretStr(first)),
            await house.worker(*shop.ALL, database_url=SecretStr(other)),
        ]
        await _work(house, 50)
        await house.until(f"select 1 from ({SESSIONS}) s where executor = $1 and worker = $1", FEWEST)
        for stop in stops:
            await house.ended(stop)
    await house.sound()


async def test_services_that_share_a_server_leave_each_other_and_clients_the_sessions_that_they_need(
    house: Installation, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of them grow as far as they may, four more start and are let in, and a client finds one free."""
    async with databases.limited(database, 13) as url:
        await house.apply(*shop.ALL)
        limited = SecretStr(url)
        stops = [
            await house.executor(database_url=limited),
            await house.worker(*shop.ALL, database_url=limited),
        ]
        await _work(house, 200)
        working = asyncio.create_task(_work(house, 400))
        for _ in range(2):
            stops += [
                await house.executor(database_url=limited),
                await house.worker(*shop.ALL, database_url=limited),
            ]
        await house.until("select 1 from process having count(*) = 6")
        async with Client.connect(house.settings(name="alone", database_url=limited)) as client:
            [id] = await client.start_many("shop.count", [{"words": "a"}])
            assert await client.result(id, timeout=60) == 1
        await working
        # (13 - 1) // 6, which each of them knows once it has beaten
        await house.until(f"select 1 from ({SESSIONS}) s where executor <= 6 and worker <= 6")
        for stop in stops:
            await house.ended(stop)
    await house.sound()


@pytest.mark.either_transport
@pytest.mark.parametrize("where", ["", "_in_thread", "_in_process"])
async def test_publishing_worker_has_no_more_connections(
    make_house: Callable[..., Installation],
    database: str,
    broker: str | None,
    request: pytest.FixtureRequest,
    where: str,
) -> None:
    """Two workers have the fewest sessions, and the servers refuse any more: one runs attempts that publish and start, and
    the other attempts that do neither. PostgreSQL and RabbitMQ count the connections of both."""
    count = 60
    async with (
        databases.limited(database, FEWEST) as loud,
        databases.limited(database, FEWEST) as quiet,
        make_house(**AS_USED) as house,
    ):
        await house.apply(*inside.ALL)
        await house.executor()
        await house.worker(*inside.ALL)
        stops = [
            await house.worker(*inside.ALL, routes=route, database_url=SecretStr(url), concurrency=20)
            for route, url in (("loud", loud), ("quiet", quiet))
        ]
        before = None
        if broker is not None:
            server = request.getfixturevalue("rabbitmq_server")
            await house.until("select 1 from process where kind = 'worker' having count(*) = 3")
            before = brokers.connections(server, broker, "worker")
            for _ in range(200):  # the management plugin learns of them a few seconds later
                if before in (None, 6):
                    break
                await asyncio.sleep(0.1)
                before = brokers.connections(server, broker, "worker")
            if before is not None:
                assert before == 6, "each worker has one to consume and one to publish"
                brokers.limit_connections(server, broker, "worker", before)
        names = {urlsplit(url).username: route for route, url in (("loud", loud), ("quiet", quiet))}
        for action in ("loud", "quiet"):
            await house.client.start_many(f"inside.{action}{where}", [{"n": n} for n in range(count)])
        most = dict.fromkeys(names.values(), 0)
        while await house.rows("select 1 from execution where finished_at is null limit 1"):
            for row in await house.rows(BY_ROLE, list(names)):
                most[names[row["usename"]]] = max(most[names[row["usename"]]], row["sessions"])
        assert most == {"loud": FEWEST, "quiet": FEWEST}
        if before is not None:
            assert brokers.connections(server, broker or "", "worker") == before
        ended = await house.rows("select distinct status, attempt from execution")
        assert [tuple(row) for row in ended] == [("completed", 1)]
        [row] = await house.rows("select count(*) as events from event")
        assert row["events"] == count
        assert (await house.statuses())["completed"] == 4 * count
        await house.sound()
        for stop in stops:
            await house.ended(stop)


async def test_a_client_holds_no_session_that_listens_for_services(
    house: Installation,
) -> None:
    await house.start(*shop.ALL)
    async with Client.connect(house.settings(name="alone")) as client:
        await client.start("shop.charge", {"order": 1})
        sessions = await house.rows(
            "select query from pg_stat_activity where application_name = 'client:alone'"
        )
    assert sessions
    assert not [row["query"] for row in sessions if row["query"].lower().startswith("listen")]
