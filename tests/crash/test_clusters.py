"""Three RabbitMQ nodes and a PostgreSQL with a standby: any of them may go, the others carry on. A short form of
`python -m bench.failover`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from pydantic import SecretStr

from penstock.settings import Settings
from penstock.store.schema import migrate
from tests.crash.processes import Fleet
from tests.crash.recovery import Recovery, in_thread
from tests.flows import shop
from tests.flows.installation import Installation
from tests.servers import choose
from tests.servers.rabbitmq_cluster import RabbitMQCluster
from tests.servers.replicated import ReplicatedPostgres

OPEN = """
select id, status, attempt, claim, task, parent, ready_at, not_before, since from execution where finished_at is null
"""


@pytest.fixture
def trio() -> Iterator[RabbitMQCluster]:
    cluster = choose.rabbitmq_cluster()
    yield cluster
    cluster.close()


async def test_the_node_that_leads_and_the_primary_die_one_after_the_other_and_at_once(
    pair: ReplicatedPostgres, trio: RabbitMQCluster, tmp_path: Path
) -> None:
    url, address = pair.dsn(), trio.add_vhost("clusters")
    await migrate.upgrade(Settings(database_url=SecretStr(url)))
    log = tmp_path / "services.log"
    async with Installation(url, address) as house:
        await house.apply(*shop.ALL, *shop.STURDY)
        with Fleet(url, address, log) as fleet:
            for start in (fleet.executor, fleet.executor, fleet.worker, fleet.worker):
                start()
            run = Recovery(house, fleet, patience=120)
            leader = trio.leads_most()
            await run.through("a node killed", lambda: in_thread(partial(trio.kill, leader)))
            await run.through(
                "failed over, the node back",
                lambda: in_thread(pair.fail_over, partial(trio.start, leader), pair.rejoin),
            )
            leader = trio.leads_most()
            await run.through("both at once", lambda: in_thread(partial(trio.kill, leader), pair.fail_over))
            assert [figure.left for figure in run.figures] == [0, 0, 0], await unfinished(house, log)
            assert await run.wrong() == [], log.read_text()[-3000:]
            await house.sound()


async def unfinished(house: Installation, log: Path) -> str:
    """Describe the state of all that should have ended, and the last lines of the services."""
    rows = [*await house.rows(OPEN), *await house.rows("select queue, ids, due_at, tries, error from outbox")]
    return "\n".join((*(str(dict(row)) for row in rows), log.read_text()[-3000:]))
