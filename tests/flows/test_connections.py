"""How many sessions the services have with PostgreSQL, and what they do where it gives them no more."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from penstock import Client
from penstock.store import connection_pool
from tests.flows import shop
from tests.flows.installation import Installation
from tests.servers import databases

SESSIONS = """
select count(*) filter (where application_name like 'executor:%') as executor,
    count(*) filter (where application_name like 'worker:%') as worker
from pg_stat_activity where datname = current_database()
"""


async def _work(house: Installation, count: int) -> None:
    ids = await house.client.start_many("shop.count", [{"words": "a b"}] * count)
    assert [await house.client.result(id, timeout=60) for id in ids] == [2] * count


async def test_an_idle_executor_has_six_sessions_at_most_and_an_idle_worker_four(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_pool, "UNUSED", 0.5)
    await house.start(*shop.ALL)
    await _work(house, 50)
    [most] = await house.rows(SESSIONS)
    assert most["executor"] <= house.settings().most_connections <= 6
    await house.until(
        f"select 1 from ({SESSIONS}) s where executor between 2 and 6 and worker between 2 and 4"
    )


async def test_a_server_that_gives_each_service_the_fewest_sessions_gets_the_work_done(
    house: Installation, database: str, broker: str | None
) -> None:
    """One for the heartbeat, one for the listener where there is one, and one for all else."""
    needed = 2 if broker else 3
    async with databases.limited(database, needed) as one, databases.limited(database, needed) as other:
        await house.apply(*shop.ALL)
        stops = [
            await house.executor(database_url=SecretStr(one)),
            await house.worker(*shop.ALL, database_url=SecretStr(other)),
        ]
        await _work(house, 50)
        [have] = await house.rows(SESSIONS)
        assert (have["executor"], have["worker"]) == (needed, needed)
        for stop in stops:
            await house.ended(stop)
    await house.sound()


async def test_a_client_has_no_session_that_listens_for_what_is_meant_for_services(
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
