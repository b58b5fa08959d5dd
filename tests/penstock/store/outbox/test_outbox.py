"""The messages that are taken back of the outbox when their holder is gone, and the ends that are announced."""

from __future__ import annotations

from datetime import timedelta

from penstock.language.terms.ids import new_id
from tests.penstock.store.stand import Stand

SOON = timedelta(hours=1)


async def test_only_messages_of_one_holder_are_returned(
    stand: Stand,
) -> None:
    mine, other = new_id(), new_id()
    for name, holder in (("a", mine), ("b", mine), ("c", other)):
        await stand.add(name, "requested")
        await stand.message(name, "execution.requested")
        await stand.sql(
            "update outbox set holder = $2, due_at = clock_timestamp() + $3::interval where ids = array[$1::uuid]",
            *(stand.ids[name], holder, SOON),
        )
    await stand.sql(
        "insert into outbox (queue, ids, body, holder) values ('announced', '{}', '{}', $1)", mine
    )
    async with stand.home.session().transaction() as tx:
        await tx.fetch("select from outbox where ids = array[$1::uuid] for update", stand.ids["b"])
        await stand.sql("set lock_timeout = '5s'")
        [row] = await stand.sql("select return_leases($1) as messages", mine)
    assert [stand.names(message["ids"]) for message in row["messages"]] == [{"a"}], (
        "what has a body is looked for"
    )
    held = await stand.sql("select holder from outbox where holder is not null")
    assert sorted(str(row["holder"]) for row in held) == sorted([str(mine), str(other)])
    [row] = await stand.sql("select return_leases($1) as messages", new_id())
    assert row["messages"] == []


async def test_second_end_before_the_first_is_handled_is_staged(stand: Stand) -> None:
    id = await stand.add("a", "completed")
    for _ in range(2):
        [row] = await stand.sql(
            "select close_executions(array[($1::uuid, null, 'completed', true, true, null, null)::ended]) as messages",
            id,
        )
        assert [message["queue"] for message in row["messages"]] == ["execution.completed"]
        await stand.sql("delete from result")  # it would be refused a second time
    assert len(await stand.sql("select from untold")) == 1
