"""Work that was submitted before any worker of its route came."""

from __future__ import annotations

from tests.flows import shop
from tests.flows.installation import Installation


async def test_work_from_before_the_first_worker_waits_for_no_relay(database: str, vhost: str) -> None:
    async with Installation(database, vhost, relay_interval=3600.0, relay_age=3600.0) as house:
        await house.apply(*shop.ALL)
        id = await house.client.start("shop.charge", {"order": 1})
        await house.client.flush()  # given back: there is no queue
        assert await house.rows("select 1 from outbox where queue = 'work.default'")
        await house.worker(*shop.ALL)
        assert await house.client.result(id, timeout=20) == {"order": 1, "charged": 0}
