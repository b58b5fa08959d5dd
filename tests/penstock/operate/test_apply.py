"""The definitions that are applied together depend on each other: everything new at once works as one after the other does."""

from __future__ import annotations

from penstock import Limit, Schedule, action, trigger
from tests.flows.installation import Installation


@action(pack="bank", limits=[Limit(1)])
async def pay() -> None: ...


@trigger("bank.mail", every="1h")
def look() -> list[dict[str, int]]:
    return []


async def test_a_schedule_comes_with_the_limit_of_its_action(database: str) -> None:
    async with Installation(database, None) as house:
        await house.apply(
            pay,
            look,
            Limit(5, ref="bank.all", scope="bank"),
            Schedule("bank.daily", action=pay, cron="@daily"),
        )
        rows = await house.rows(
            "select n.action, cardinality(n.limits) as limits from namespace n order by 1"
        )
        assert [tuple(row) for row in rows] == [("bank.mail", 1), ("bank.pay", 2)]
