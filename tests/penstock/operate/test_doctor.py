"""What `doctor` looks at is what there is, not what somebody once listed."""

from __future__ import annotations

from datetime import UTC, datetime

from penstock.messaging.transports import Message
from penstock.operate import doctor
from penstock.operate.doctor import broker
from penstock.service.assembly import make_transport
from penstock.store import partitions
from penstock.store.queues import QUEUES
from tests.flows.installation import Installation


async def test_it_looks_at_every_queue_there_is(database: str, vhost: str) -> None:
    async with Installation(database, vhost) as house:
        transport = make_transport(house.settings(), role="test")
        await transport.open()
        for queue in QUEUES:
            await transport.declare(queue)
            await transport.publish([Message(queue, b"{}", queue, queue)])
        found = {one.what: one.says for one in await broker.findings(house.settings())}
        await transport.close()
    assert found["queues"] == ", ".join(f"{queue}: 1" for queue in QUEUES)


async def test_it_looks_at_every_table_that_has_partitions(house: Installation) -> None:
    tables = await partitions.tables(house.client.session)
    assert {"event", "history", "archive", "log_line", "fire", "admission"} <= set(tables)
    for table in tables:
        await house.rows(f"drop table {table}_{datetime.now(UTC):%Y%m%d}")
    says = next(one.says for one in await doctor.examine(house.settings()) if one.what == "partitions")
    assert [table for table in tables if f"{table}_{datetime.now(UTC):%Y%m%d}" not in says] == []
