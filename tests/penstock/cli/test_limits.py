"""`penstock limit`: what is set by hand, what is declared, and which of them counts."""

from __future__ import annotations

from penstock import Limit, action
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock


@action(pack="till", limits=[Limit(2)])
async def charge(customer: str = "") -> None: ...


async def test_a_limit_is_made_changed_listed_and_removed(house: Installation) -> None:
    await house.apply(charge)
    assert "No limits" not in (await penstock("limit", "list")).out
    said = await penstock(
        "limit", "set", "till.all", 5, "--scope", "till", "--rate", "100/min", "--by", "customer"
    )
    assert (said.code, said.err) == (0, "")
    assert "Limit till.all allows 5 at once, 100 in 60 s, for till." in said.out
    said = await penstock("limit", "set", "till.all", "--unset", "rate", "--max-waiting", 7, "--json")
    assert (said.document["max"], said.document["rate_count"], said.document["max_waiting"]) == (5, None, 7)
    assert said.document["by"] == ["customer"]
    listed = {row["ref"]: row for row in (await penstock("limit", "list", "--json")).documents}
    assert set(listed) == {"till.all", "till.charge.all"}
    assert (listed["till.all"]["by_hand"], listed["till.charge.all"]["by_hand"]) == (True, False)
    assert "is removed" in (await penstock("limit", "rm", "till.all")).out
    assert (await penstock("limit", "rm", "till.all")).code == 1


async def test_raising_a_limit_starts_waiting_work_at_once(house: Installation) -> None:
    """No executor runs: the session that sets the limit admits them."""
    await house.apply(charge)
    await house.rows("insert into process (id, kind, name, routes, actions) values (gen_random_uuid(), 'worker', 'w', "
                     "'{default}', '{till.charge}') returning 1")  # fmt: skip
    await house.client.start_many("till.charge", [{} for _ in range(5)])
    assert await house.statuses() == {"scheduled": 2, "queued": 3}
    await penstock("limit", "set", "till.charge.all", 4)
    assert await house.statuses() == {"scheduled": 4, "queued": 1}
    await penstock("limit", "set", "till.charge.all", 1)
    assert await house.statuses() == {"scheduled": 4, "queued": 1}
    await house.sound()


async def test_a_limit_set_by_hand_stays_when_definitions_are_applied(house: Installation) -> None:
    await house.apply(charge)
    said = await penstock("limit", "set", "till.charge.all", 9)
    assert "penstock limit rm till.charge.all" in said.out
    unchanged = await house.apply(charge)
    assert {change.what for change in unchanged} == {"unchanged"}
    changed = await house.apply(later_version())
    assert {(c.ref, c.what) for c in changed if c.kind == "limit"} == {("till.charge.all", "set by hand")}
    [row] = (await penstock("limit", "list", "--json")).documents
    assert (row["max"], row["declared"]["max"]) == (9, 4)
    said = await penstock("limit", "rm", "till.charge.all", "--json")
    assert said.document["in_force"]["max"] == 4
    [row] = (await penstock("limit", "list", "--json")).documents
    assert (row["max"], row["by_hand"]) == (4, False)


def later_version() -> object:
    """Return the same action with another limit."""

    @action(pack="till", limits=[Limit(4)])
    async def charge(customer: str = "") -> None: ...

    return charge


async def test_a_limit_that_is_only_declared_goes_until_it_is_applied_again(house: Installation) -> None:
    await house.apply(charge)
    said = await penstock("limit", "rm", "till.charge.all")
    assert "the next apply creates it again" in said.out
    assert (await penstock("limit", "list", "--json")).documents == []
    await house.apply(charge)
    assert [row["max"] for row in (await penstock("limit", "list", "--json")).documents] == [2]


async def test_a_wrong_limit_is_explained(house: Installation) -> None:
    await house.apply(charge)
    near = await penstock("limit", "set", "till.charge.al", 3)
    assert near.code == 1
    assert "Did you mean 'till.charge.all'?" in near.err
    assert "--scope" in (await penstock("limit", "set", "other.thing", 3)).err
    assert "is not a valid ref" in (await penstock("limit", "set", "thing", 3, "--scope", "till")).err
    assert "is not a rate" in (await penstock("limit", "set", "till.charge.all", "--rate", "fast")).err
    assert "limits nothing" in (await penstock("limit", "set", "till.charge.all", "--unset", "max")).err
    said = await penstock("limit", "set", "other.thing", 3, "--scope", "other")
    assert "was ever started" in said.out


async def test_queues_show_routes_and_lines(house: Installation) -> None:
    await house.apply(charge)
    assert "No execution waits for a worker" in (await penstock("queues")).out
    await house.rows("insert into process (id, kind, name, routes, actions, concurrency) values (gen_random_uuid(), 'worker', "
                     "'w', '{default}', '{till.charge}', 8) returning 1")  # fmt: skip
    ids = await house.client.start_many("till.charge", [{"customer": "a"} for _ in range(5)])
    await house.rows("select * from schedule_executions($1::uuid[])", ids)
    route, line = (await penstock("queues", "--json")).documents
    assert (route["queue"], route["ready"], route["workers"], route["slots"]) == ("work.default", 2, 1, 8)
    assert (line["limit"], line["held"], line["max"], line["waiting"]) == ("till.charge.all", 2, 2, 3)
    assert "till.charge.all" in (await penstock("queues")).out


async def test_why_says_it_in_a_sentence_and_in_json(house: Installation) -> None:
    await house.apply(charge)
    await house.rows("insert into process (id, kind, name, routes, actions) values (gen_random_uuid(), 'worker', 'w', "
                     "'{default}', '{till.charge}') returning 1")  # fmt: skip
    ids = await house.client.start_many("till.charge", [{} for _ in range(3)])
    await house.rows("select * from schedule_executions($1::uuid[])", ids)
    said = await penstock("why", ids[2])
    assert said.code == 0
    assert "queued: Waits for a slot of the limit till.charge.all." in said.out
    assert "2 of 2 slots are in use." in said.out
    assert "This execution is 1st in line." in said.out
    assert (await penstock("why", ids[2], "--json")).document["facts"]["limit"] == "till.charge.all"
    assert (await house.client.why(ids[2])).because == "limit"
    assert (await penstock("why", "00000000-0000-0000-0000-000000000000")).code == 1
