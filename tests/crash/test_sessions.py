"""A process that is killed is noticed by its session. Whatever else would notice it takes an hour here."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from penstock.language.terms.ids import new_id
from penstock.settings import Settings
from penstock.store.schema import migrate
from penstock_executor.loops import reap_workers
from tests.crash.processes import Fleet
from tests.flows import shop
from tests.flows.installation import Installation
from tests.servers.postgres import Postgres

NEVER: dict[str, Any] = {
    "heartbeat_interval": 1000.0,
    "stale_threshold": 3600.0,
    "sweep_interval": 3000.0,
    "restage_age": 3600.0,
    "lease": 3600.0,
}


async def test_the_work_of_a_killed_worker_runs_again_elsewhere(
    house: Installation, database: str, broker: str | None, tmp_path: Path
) -> None:
    await house.apply(*shop.ALL)
    with Fleet(database, broker, tmp_path / "services.log", **NEVER) as fleet:
        fleet.executor()
        await house.until("select 1 from process where kind = 'executor'", seconds=60)
        victim = fleet.worker()
        await house.until("select 1 from process where kind = 'worker'", seconds=60)
        ids = await house.client.start_many("shop.wait_for", [{"seconds": 600.0}] * 5)
        await house.until("select 1 from execution where status = 'running' having count(*) = 5", seconds=60)
        fleet.worker()
        await house.until("select 1 from process where kind = 'worker' having count(*) = 2", seconds=60)
        fleet.kill(victim)
        await house.until(
            "select 1 from execution where status = 'running' and attempt = 2 having count(*) = 5", seconds=60
        )
        rows = await house.rows("select outcome, error ->> 'message' as why from attempt")
        assert {row["outcome"] for row in rows} == {"lost"}
        assert all(row["why"].endswith("was lost (its session ended)") for row in rows)
        await house.client.cancel(*ids)
        await house.quiet()
    await house.sound()


REQUEST = """
select (unnest(r)).outbox_id from namespace n join catalog c on c.kind = 'action' and c.ref = n.action,
    request_executions(array[$1::uuid], array[n.id], array[c.definition_id], array['{"words": "a b"}'],
        null, null, null, null, null, null, null, false) r
where n.action = 'shop.count'
"""
TAKE = "update outbox set due_at = clock_timestamp() + interval '1 hour', holder = $2 where id = $1"


async def test_work_of_a_killed_executor_is_done_by_another(
    house: Installation, database: str, broker: str | None, tmp_path: Path
) -> None:
    await house.apply(*shop.ALL)
    with Fleet(database, broker, tmp_path / "services.log", **NEVER) as fleet:
        fleet.executor()
        await house.until("select 1 from process where kind = 'executor'", seconds=60)
        victim = fleet.executor()
        [_, [holder]] = await house.until(
            "select id from process where kind = 'executor' and (select count(*) from process) = 2 order by started_at",
            seconds=60,
        )
        fleet.worker()
        await house.until("select 1 from process having count(*) = 3", seconds=60)
        assert (
            await house.client.result(await house.client.start("shop.count", {"words": "a"}), timeout=60) == 1
        )
        async with house.session.transaction() as tx:  # it has leased a message, and does nothing with it
            [[message]] = await tx.fetch(REQUEST, id := new_id())
            await tx.fetch(TAKE, message, holder)
        fleet.kill(victim)
        assert await house.client.result(id, timeout=60) == 2
    await house.sound()


async def test_a_restart_of_postgresql_takes_nothing_from_living_workers(
    private_postgres: Callable[[], Postgres], tmp_path: Path
) -> None:
    """All locks are free at once then, and say nothing of their holders, however late one of them comes back."""
    server = await asyncio.to_thread(private_postgres)
    url = server.dsn("postgres")
    await migrate.upgrade(Settings(database_url=SecretStr(url)))
    async with Installation(url, None) as house:
        await house.apply(*shop.ALL)
        with Fleet(url, None, tmp_path / "services.log", stale_threshold=60.0) as fleet:
            slow, *_ = (
                fleet.worker(5),
                fleet.worker(5),
                fleet.executor(),
                fleet.executor(),
            )  # each worker has half
            await house.until("select 1 from process having count(*) = 4", seconds=60)
            ids = await house.client.start_many("shop.wait_for", [{"seconds": 600.0}] * 10)
            await house.until(
                "select 1 from execution where status = 'running' having count(*) = 10", seconds=60
            )
            [[instant]] = await house.rows("select clock_timestamp()")
            slow.send_signal(signal.SIGSTOP)
            await asyncio.to_thread(server.restart)
            await house.until(
                "select 1 from process where beat_at > $1 having count(*) = 3", instant, seconds=60
            )
            # Until each executor that would take work back has looked.
            await asyncio.sleep(reap_workers.GRACE + 3 * reap_workers.LOOK)
            slow.send_signal(signal.SIGCONT)
            await house.until(
                "select 1 from process where beat_at > $1 having count(*) = 4", instant, seconds=60
            )
            rows = await house.rows("select status, attempt from execution")
            assert {(row["status"], row["attempt"]) for row in rows} == {("running", 1)}
            await house.client.cancel(*ids)
            await house.quiet()
        await house.sound()
