"""A caller that cancels is not told of what passes by itself."""

from __future__ import annotations

import asyncio

from tests.flows import shop
from tests.flows.installation import Installation

WAITS = """
select pg_cancel_backend(pid) from pg_stat_activity
where wait_event_type = 'Lock' and query like '%cancel_nested%' and datname = current_database()
"""


async def test_a_cancellation_whose_statement_is_cancelled_is_tried_again(house: Installation) -> None:
    await house.apply(*shop.ALL)
    id = await house.client.start("shop.count", {"words": "a"})
    other = (await house.parts()).database
    async with other.session().transaction() as tx:
        await tx.fetch("select from execution where id = $1 for update", id)
        cancelling = asyncio.create_task(house.client.cancel(id))
        async with asyncio.timeout(20):
            while not await other.session().fetch(WAITS):
                await asyncio.sleep(0.01)
    assert await cancelling == 1
    assert (await house.statuses()) == {"cancelled": 1}
