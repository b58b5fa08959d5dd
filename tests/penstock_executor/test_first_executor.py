"""Workflows that were started before any executor came, on a broker that has none of its queues yet."""

from __future__ import annotations

from penstock.language.workflows import from_yaml
from tests.flows import shop
from tests.flows.installation import Installation

CHAIN = from_yaml("{workflow: shop.chain, tasks: {one: {action: shop.count, input: {words: a b}}}}")


async def test_workflows_from_before_the_first_executor_wait_for_no_relay(database: str, vhost: str) -> None:
    async with Installation(database, vhost, relay_interval=3600.0, relay_age=3600.0) as house:
        await house.apply(shop.count, CHAIN)
        id = await house.client.start("shop.chain")
        await house.client.flush()  # given back: there is no queue
        assert await house.rows("select 1 from outbox where queue = 'workflow.started'")
        await house.worker(shop.count)
        await house.executor()
        await house.client.result(id, timeout=20)
