"""The objects that `doctor` looks at are those that exist, not a list that may be old."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from penstock.messaging.transports import Message
from penstock.messaging.transports.choice import make_transport
from penstock.operate import doctor
from penstock.operate.doctor import broker, installation
from penstock.store.outbox.queues import QUEUES
from penstock.store.schema import partitions
from penstock.store.session import clock
from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.messaging.transports.broker import plain_pika, short_of_memory
from tests.servers.rabbitmq import RabbitMQ


async def test_it_looks_at_every_queue_there_is(database: str, vhost: str) -> None:
    async with Installation(database, vhost) as house:
        transport = make_transport(house.client.database, role="test")
        await transport.open()
        for queue in QUEUES:
            await transport.declare(queue)
            await transport.publish([Message(queue, b"{}", queue, queue)])
        found = {one.what: one.says for one in await broker.findings(house.settings())}
        await transport.close()
    assert found["queues"] == ", ".join(f"{queue}: 1" for queue in QUEUES)


async def test_broker_without_exchange_is_a_warning_before_the_first_executor(
    database: str, vhost: str
) -> None:
    async with Installation(database, vhost) as house:
        finding = await _of_the_broker(house)
        assert finding.state == "warning"
        assert finding.fix == "Start an executor: it declares the exchanges and the queues."
        [refused] = [f for f in await broker.findings(house.settings()) if f.what == "rabbitmq"]
        assert refused.state == "bad"


async def test_it_names_queues_and_bindings_that_are_missing(database: str, vhost: str) -> None:
    async with Installation(database, vhost) as house:
        await house.apply(shop.count)
        await house.worker(shop.count)  # and no executor that would declare what is its own
        await house.until("select 1 from process where kind = 'worker'")
        transport = (await house.parts()).transport
        owned = [queue for queue in QUEUES if queue not in ("dead", "event.received")]
        for queue in ("dead", "event.received", "work.default"):
            await transport.declare(queue)
        found = await _of_the_broker(house)
        assert [f"penstock.{queue}" in found.says for queue in owned] == [True] * len(owned)
        for queue in owned:
            make = make_transport(house.client.database, role="test")
            await make.open()
            await make.declare(queue)
            await make.close()
        assert (await _of_the_broker(house)).state == "ok"
        with plain_pika(vhost) as channel:
            channel.queue_unbind("penstock.execution.requested", "penstock", "execution.requested")
        found = await _of_the_broker(house)
        assert found.state == "bad"
        assert "penstock.execution.requested is not bound to the exchange penstock" in found.says
        with plain_pika(vhost) as channel:
            channel.queue_delete("penstock.execution.requested")
        found = await _of_the_broker(house)
        assert found.says == "no queue penstock.execution.requested"
        await house.executor()
        await house.until("select 1 from process where kind = 'executor'")
        assert await house.client.run("shop.count", {"words": "a b"}, timeout=20) == 2
        assert (await _of_the_broker(house)).state == "ok"


async def test_broker_with_an_alarm_is_named(database: str, private_rabbitmq: Callable[[], RabbitMQ]) -> None:
    server = await asyncio.to_thread(private_rabbitmq)
    async with Installation(database, server.add_vhost("alarm")) as house:
        await house.executor()
        await house.apply(shop.count)
        await house.worker(shop.count)
        await house.until("select from process having count(*) = 2")
        async with short_of_memory(server):
            found = await _of_the_broker(house)
        assert found.state == "bad"
        assert found.says == "RabbitMQ answers, but accepts no messages: it is short of memory or disk"
        assert "rabbitmq-diagnostics alarms" in str(found.fix)


async def test_roles_are_not_checked_on_the_embedded_server(database: str) -> None:
    async with Installation(database, None) as house:
        whole = {finding.what for finding in await doctor.examine(house.settings())}
        embedded = {finding.what for finding in await doctor.examine(house.settings(), is_embedded=True)}
    assert whole - embedded == {"roles"}


async def _of_the_broker(house: Installation) -> doctor.Finding:
    return next(one for one in await doctor.examine(house.settings()) if one.what == "rabbitmq")


async def test_it_looks_at_every_table_that_has_partitions(house: Installation) -> None:
    tables = await partitions.tables(house.client.session)
    assert {"event", "history", "archive", "log_line", "fire", "admission"} <= set(tables)
    for table in tables:
        await house.rows(f"drop table {table}_{datetime.now(UTC):%Y%m%d}")
    says = next(one.says for one in await doctor.examine(house.settings()) if one.what == "partitions")
    assert [table for table in tables if f"{table}_{datetime.now(UTC):%Y%m%d}" not in says] == []


async def test_days_of_partitions_are_those_of_the_database(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of this machine may be months off."""

    async def now(_session: object) -> datetime:
        return datetime(2040, 5, 6, tzinfo=UTC)

    monkeypatch.setattr(clock, "now", now)
    [finding] = [
        row
        for row in await installation.findings(house.session, house.settings())
        if row.what == "partitions"
    ]
    assert (finding.state, "event_20400506" in finding.says) == ("bad", True)
