"""The calls to subscribers: their moves, their time and their fate. Each rule is there once as it says, and once for every
reason not to."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import orjson

from penstock.language.terms.ids import new_id
from tests.penstock.store.stand import AGO, Stand

PATIENCE = 600.0
SOON = 10
"""Seconds after which a statement waits for what it should pass over."""


async def subscriber(
    stand: Stand,
    name: str,
    *,
    failing: timedelta | None = None,
    disabled: timedelta | None = None,
    **columns: Any,
) -> None:
    columns = {
        "name": name,
        "url": "u",
        "created_by": "me",
        "statuses": ["completed"],
    } | columns
    places = ", ".join(f"${n}" for n in range(1, len(columns) + 1))
    await stand.sql(f"insert into subscription ({', '.join(columns)}) values ({places})", *columns.values())
    await stand.sql(
        "update subscription set failing_since = clock_timestamp() - $2::interval,"
        " disabled_at = clock_timestamp() - $3::interval where name = $1",
        *(name, failing, disabled),
    )


async def call(stand: Stand, name: str, subscription: str, ago: timedelta = AGO) -> UUID:
    stand.ids[name] = new_id()
    await stand.sql(
        "insert into delivery (id, subscription, body, due_at) values ($1, $2, '{}', clock_timestamp() - $3::interval)",
        *(stand.ids[name], subscription, ago),
    )
    return stand.ids[name]


async def calls(stand: Stand) -> set[str]:
    return stand.names([row["id"] for row in await stand.sql("select id from delivery")])


async def move(
    stand: Stand,
    name: str,
    space: int,
    status: str = "completed",
    *,
    task: bool = False,
    id: int | None = None,
) -> None:
    stand.ids[name] = new_id()
    await stand.sql(
        "insert into subscribed_move (id, execution_id, status, attempt, namespace_id, parent) overriding system value"
        " values (coalesce($5, nextval('subscribed_move_id_seq')), $1, $2, 1, $3, $4)",
        *(stand.ids[name], status, space, stand.ids[name] if task else None, id),
    )


async def make(stand: Stand, moves: int = 100, waiting: int = 100) -> int:
    async with asyncio.timeout(SOON):
        [[made]] = await stand.sql("select make_deliveries($1, $2)", moves, waiting)
    assert isinstance(made, int)
    return made


async def told(stand: Stand) -> dict[str, set[str]]:
    """The moves that each subscriber is to be told of."""
    found: dict[str, set[str]] = {}
    for row in await stand.sql("select subscription, body from delivery where body <> '{}'"):
        found.setdefault(row["subscription"], set()).update(
            stand.names([UUID(orjson.loads(row["body"])["data"]["id"])])
        )
    return found


async def test_only_matching_subscribers_are_called_for_a_move(stand: Stand) -> None:
    ours = stand.namespaces["action", "work.default"]
    [[theirs]] = await stand.sql(
        "insert into namespace (name, action, kind, queue) values ('other::x::y', 'x.y', 'action', 'work.x') returning id"
    )
    await subscriber(stand, "all", statuses=["completed", "failed"])
    await subscriber(stand, "failures", statuses=["failed"])
    await subscriber(stand, "tasks too", tasks=True)
    await subscriber(stand, "tenant", tenant="public")
    await subscriber(stand, "action", action="a.*")
    await subscriber(stand, "workflow", workflow="x.y")
    await subscriber(stand, "disabled", disabled=AGO)
    await move(stand, "ours", ours)
    await move(stand, "theirs", theirs)
    await move(stand, "failed", ours, "failed")
    await move(stand, "task", ours, task=True)
    assert await make(stand) == 4
    assert await told(stand) == {
        "all": {"ours", "theirs", "failed"},
        "failures": {"failed"},
        "tasks too": {"ours", "theirs", "task"},
        "tenant": {"ours"},
        "action": {"ours"},
        "workflow": {"theirs"},
    }
    assert await make(stand) == 0, "each move once"


async def test_the_oldest_moves_come_first_and_those_that_another_has_are_left_to_it(stand: Stand) -> None:
    space = stand.namespaces["action", "work.default"]
    await subscriber(stand, "all")
    for name, id in (("third", 30), ("first", 10), ("fourth", 40), ("second", 20)):
        await move(stand, name, space, id=id)
    async with stand.home.session().transaction() as tx:
        await tx.fetch("select from subscribed_move where id = 10 for update")
        assert await make(stand, moves=1) == 1
        assert await told(stand) == {"all": {"second"}}
    assert await make(stand, moves=2) == 2
    assert await told(stand) == {"all": {"first", "second", "third"}}


async def test_a_subscriber_with_too_many_calls_gets_no_more(stand: Stand) -> None:
    for name, waiting in (("full", 2), ("fuller", 3), ("with room", 1), ("empty", 0)):
        await subscriber(stand, name)
        for n in range(waiting):
            await call(stand, f"{name} {n}", name)
    await move(stand, "move", stand.namespaces["action", "work.default"])
    await make(stand, waiting=2)
    assert await told(stand) == {"with room": {"move"}, "empty": {"move"}}
    rows = await stand.sql("select name, dropped from subscription where dropped > 0")
    assert {row["name"]: row["dropped"] for row in rows} == {"full": 1, "fuller": 1}


async def take(stand: Stand, each: int = 10, most: int = 100, busy: tuple[str, ...] = ()) -> set[str]:
    async with asyncio.timeout(SOON):
        rows = await stand.sql("select id from lease_calls($1, $2, $3, 60)", list(busy), each, most)
    return stand.names([row["id"] for row in rows])


async def test_a_batch_has_few_calls_of_each_subscriber(stand: Stand) -> None:
    await subscriber(stand, "answers")
    await subscriber(stand, "fails", failing=AGO)
    await subscriber(stand, "disabled", disabled=AGO)
    for n, ago in ((3, 1), (1, 3), (2, 2)):
        await call(stand, f"answers {n}", "answers", timedelta(hours=ago))
        await call(stand, f"fails {n}", "fails", timedelta(hours=ago))
    await call(stand, "later", "answers", timedelta(hours=-1))
    await call(stand, "of nobody", "disabled")
    assert await take(stand, each=2) == {"answers 1", "answers 2", "fails 1"}
    rows = await stand.sql("select id, due_at > clock_timestamp() as later from delivery where tries = 1")
    assert stand.names([row["id"] for row in rows if row["later"]]) == {"answers 1", "answers 2", "fails 1"}
    async with stand.home.session().transaction() as tx:
        await tx.fetch("select from delivery where id = $1 for update", stand.ids["fails 2"])
        assert await take(stand) == {"answers 3", "fails 3"}
    assert await take(stand) == {"fails 2"}


async def test_no_more_are_taken_than_there_is_room_for(stand: Stand) -> None:
    for name in "abc":
        await subscriber(stand, name)
        await call(stand, f"of {name}", name)
    assert len(await take(stand, most=2)) == 2
    assert len(await take(stand, most=2)) == 1


async def test_busy_subscriber_gets_no_call_and_failing_ones_come_last(stand: Stand) -> None:
    for name, failing in (("fails", AGO), ("fails too", AGO), ("answers", None), ("busy", None)):
        await subscriber(stand, name, failing=failing)
        await call(stand, f"of {name}", name)
    assert await take(stand, most=1, busy=("busy", "fails too")) == {"of answers"}
    assert await take(stand, busy=("busy", "fails too")) == {"of fails"}
    assert await take(stand) == {"of busy", "of fails too"}


async def settle(
    stand: Stand, *became: tuple[str, str, str | None, float | None], gone: frozenset[str] = frozenset()
) -> set[str]:
    """`became`: a call, its subscriber, the error, and the delay. Returns the disabled subscribers."""
    names, who, errors, delays = map(list, zip(*became, strict=True))
    [[disabled]] = await stand.sql(
        "select settle_deliveries($1, $2, $3, $4, $5, $6)",
        *([stand.ids[str(name)] for name in names], who, errors, delays, [w in gone for w in who], PATIENCE),
    )
    return set(disabled or ())


async def test_outcomes_of_calls_are_recorded_with_their_subscribers(stand: Stand) -> None:
    minute = timedelta(minutes=1)
    for name, failing in (
        ("answered", AGO),
        *(
            ("new failure", None),
            ("fails", minute),
            ("failed long", AGO),
            ("gone", None),
            ("both", AGO),
            ("other", AGO),
        ),
    ):
        await subscriber(stand, name, failing=failing, error="old", statuses=[f"of {name}"])
        await call(stand, f"call of {name}", name)
        await call(stand, f"second of {name}", name)
    await subscriber(stand, "disabled", disabled=AGO, disabled_because="so")
    await call(stand, "call of disabled", "disabled")
    before = await stand.sql("select name, failing_since from subscription where name = 'fails'")
    disabled = await settle(
        stand,
        ("call of answered", "answered", None, 5.0),
        ("call of new failure", "new failure", "e", 5000.0),
        ("call of fails", "fails", "e", None),
        ("call of failed long", "failed long", "e", 5.0),
        ("call of gone", "gone", "410", None),
        ("call of both", "both", None, None),
        ("second of both", "both", "e", None),
        ("call of disabled", "disabled", None, None),
        gone=frozenset({"gone"}),
    )
    assert disabled == {"gone", "failed long"}
    assert await calls(stand) == {
        *("second of answered", "call of new failure", "second of new failure", "second of fails"),
        *("call of other", "second of other"),
    }
    rows = await stand.sql("select id from delivery where due_at > clock_timestamp() + interval '1 hour'")
    assert stand.names([row["id"] for row in rows]) == {"call of new failure"}
    rows = await stand.sql(
        "select name, error, dropped, delivered_at is not null as reached, failing_since is not null as failing,"
        " disabled_at is not null as off, disabled_because as because from subscription"
    )
    found = {row["name"]: tuple(row)[1:] for row in rows}
    assert found == {
        "answered": (None, 0, True, False, False, None),
        "new failure": ("e", 0, False, True, False, None),
        "fails": ("e", 1, False, True, False, None),
        "failed long": ("e", 0, False, True, True, "its requests failed for too long: e"),
        "gone": ("410", 1, False, True, True, "its URL answered 410 Gone"),
        "both": (None, 1, True, False, False, None),
        "other": ("old", 0, False, True, False, None),
        "disabled": (None, 0, False, False, True, "so"),
    }
    assert await stand.sql("select name, failing_since from subscription where name = 'fails'") == before
    [[subscribed]] = await stand.sql("select subscribed from cluster")
    assert set(subscribed) == {"of answered", "of new failure", "of fails", "of both", "of other"}


async def test_subscribers_are_locked_before_their_calls_and_no_others_are(stand: Stand) -> None:
    for name in "ab":
        await subscriber(stand, name)
        await call(stand, f"of {name}", name)
    async with stand.home.session().transaction() as tx:
        await tx.fetch("select from subscription where name = 'a' for update")
        async with asyncio.timeout(SOON):
            await settle(stand, ("of b", "b", None, None))
        task = asyncio.create_task(settle(stand, ("of a", "a", None, None)))
        async with asyncio.timeout(SOON):
            while not await tx.fetch("select from pg_locks where not granted"):
                await asyncio.sleep(0.01)
        await tx.fetch("select from delivery where id = $1 for update nowait", stand.ids["of a"])
    await task
    assert await calls(stand) == set()


async def test_statuses_without_subscribers_are_not_looked_for(stand: Stand) -> None:
    await subscriber(stand, "one", statuses=["completed", "failed"])
    await subscriber(stand, "two", statuses=["failed"])
    await subscriber(stand, "off", statuses=["canceled"], disabled=AGO)
    for left in ({"completed", "failed"}, {"failed"}, set[str]()):
        await stand.sql("select subscribe_cluster()")
        [[subscribed]] = await stand.sql("select subscribed from cluster")
        assert set(subscribed) == left
        await stand.sql("delete from subscription where name = $1", "one" if len(left) == 2 else "two")
