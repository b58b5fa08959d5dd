"""The locks of keys are taken in one order, whatever a transaction does: a session that holds one and wants a lower
one could wait for a session that holds that and wants the first. Each transaction of a busy installation is watched
by the database itself. (Not here: a turn of workflows may end some tasks and start others, and so takes keys twice;
PostgreSQL breaks a circle of those, and the turn is tried again.)"""

from __future__ import annotations

import asyncio
from typing import Any

from penstock import Limit, RetryPolicy, action
from tests.flows.installation import Installation
from tests.kit import lock_order

BY = tuple(f"lock.by_{n}" for n in range(4))


def limited(name: str) -> Any:
    @action(
        pack="lock",
        ref=name,
        limits=[Limit(3), Limit(1, by="customer")],
        retry=RetryPolicy(max_attempts=2, initial_delay=0.01),
    )
    async def work(customer: int = 0, fails: bool = False) -> int:
        await asyncio.sleep(0.01)
        if fails:
            raise ConnectionError("not now")
        return customer

    return work


ACTIONS = [limited(name) for name in BY]


async def test_no_transaction_takes_the_locks_of_keys_out_of_their_order(house: Installation) -> None:
    await lock_order.watch(house.session)
    await house.start(*ACTIONS)
    for turn in range(8):
        for ref in BY:
            ids = await house.client.start_many(
                ref, [{"customer": n % 5, "fails": n % 7 == 0} for n in range(12)]
            )
        await house.client.cancel(*ids[turn % 2 :: 2])
    await house.until(
        "select 1 where not exists (select from execution where finished_at is null)", seconds=90
    )
    violations = await lock_order.out_of_order(house.session)
    assert not violations, "\n".join(violations)
