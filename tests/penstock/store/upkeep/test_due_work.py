"""The due work is done one thing a transaction, in this order: timers, keys to wake, lanes to regroup, unanswered inquiries.
So is the time of the next due work."""

from __future__ import annotations

from datetime import timedelta

from penstock.language.terms.ids import new_id
from tests.penstock.store.stand import Stand

HOUR = timedelta(hours=1)


async def look(stand: Stand) -> tuple[bool, float | None]:
    [row] = await stand.sql("select did, next_in, messages from fire_due(10)")
    assert row["messages"] is not None
    return row["did"], row["next_in"]


async def left(stand: Stand) -> set[str]:
    """Return those of these that are still to be done."""
    [row] = await stand.sql(
        "select exists (select from timer) as timers, exists (select from wake) as wakes,"
        " exists (select from lane where gate_kind = 'regroup') as lanes,"
        " exists (select from inquiry where status = 'created') as inquiries"
    )
    return {name for name, there in row.items() if there}


async def inquiry(stand: Stand, name: str, ago: timedelta, status: str = "created") -> None:
    await stand.add(name, "waiting", attempt=1)
    await stand.sql(
        "insert into inquiry (execution_id, status, prompt, due_at) values ($1, $2, '?', clock_timestamp() - $3::interval)",
        *(stand.ids[name], status, ago),
    )


async def lane(stand: Stand, gate: str) -> None:
    await stand.sql(
        "insert into lane (id, namespace_id, keys, gate_kind, rank, turn, ready_at, execution_id)"
        " values ($1, $2, array[(1, '')::limit_key], $3, 0, 0, now(), $1)",
        *(new_id(), await stand.namespace("action", "work.default"), gate),
    )


async def test_one_thing_is_done_at_a_time_and_nothing_is_forgotten(stand: Stand) -> None:
    await stand.add("a", "requested")
    await stand.timer("a", "ready")
    await stand.sql("insert into wake (limit_id, group_value) values (1, '')")
    await lane(stand, "regroup")
    await inquiry(stand, "b", HOUR)
    seen = [await left(stand)]
    while (await look(stand))[0]:
        seen.append(await left(stand))
    assert seen == [
        {"timers", "wakes", "lanes", "inquiries"},
        {"wakes", "lanes", "inquiries"},
        {"lanes", "inquiries"},
        {"wakes", "inquiries"},  # the regrouped lane waits at its gate
        {"inquiries"},
        set(),
    ]
    assert await stand.with_status("timeout") == {"b"}


async def test_where_nothing_is_known_to_be_due_nothing_is_waited_for(stand: Stand) -> None:
    await inquiry(stand, "answered", -HOUR, "responded")
    assert await look(stand) == (False, None)


async def test_the_next_instant_is_the_soonest_of_all(stand: Stand) -> None:
    await stand.add("a", "requested")
    hours = 9
    for due in ("timer", "inquiry", "wake"):
        hours -= 2
        if due == "timer":
            await stand.timer("a", "ready", -hours * HOUR)
        elif due == "inquiry":
            await inquiry(stand, "b", -hours * HOUR)
        else:
            at = "clock_timestamp() + make_interval(hours => $1)"
            await stand.sql(f"insert into wake (limit_id, group_value, at) values (1, '', {at})", hours)
        did, next_in = await look(stand)
        assert not did
        assert next_in is not None
        assert (hours - 1) * 3600 < next_in <= hours * 3600
    for _ in range(2):
        await lane(stand, "worker")
    did, next_in = await look(stand)
    assert not did
    assert next_in is not None
    assert next_in <= 2, "while somebody stands in line, it is soon"
