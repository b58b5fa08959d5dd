"""The work that a worker gets of an envelope, or of parked work, and the fate of the rest. Each is there once as it should
be taken, and once for every reason not to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from penstock.language.terms.ids import new_id
from penstock.store.executions import attempts
from penstock.store.executions.attempts import Claimant
from penstock.store.session.database import Session, Transaction
from tests.penstock.store.members import ME
from tests.penstock.store.mending import there
from tests.penstock.store.stand import Stand

Rooms = Sequence[tuple[int, str, int]]


async def define(stand: Stand, *refs: str) -> list[int]:
    rows = [
        await stand.sql(
            "insert into definition (kind, ref, digest, body) values ('action', $1, $1, '{}') returning id",
            ref,
        )
        for ref in refs
    ]
    return [row["id"] for [row] in rows]


async def offer(
    stand: Stand, name: str, definition: int | None = None, status: str = "scheduled", **more: Any
) -> UUID:
    id = await stand.add(name, status, options={}, **more)
    if definition is not None:
        await stand.sql("update execution set definition_id = $2 where id = $1", id, definition)
    return id


async def claim(
    stand: Stand, *names: str, take: int = 100, lacks: Sequence[int] = (), rooms: Rooms = ()
) -> dict[str, Any]:
    """Return the answer to a worker that knows the definition of the stand alone."""
    [row] = await stand.sql(
        "select * from claim_executions($1, $1, $2, $3, 'work.default', $4, $5, $6::executor_room[])",
        *(
            ME,
            [stand.ids[name] for name in names if name in stand.ids],
            take,
            [stand.definition],
            list(lacks),
            list(rooms),
        ),
    )
    return dict(row)


def taken(stand: Stand, answer: dict[str, Any]) -> set[str]:
    return stand.names([one["execution_id"] for one in answer["claimed"]])


async def test_of_an_envelope_that_is_taken_whole_nothing_is_left_to_say(stand: Stand) -> None:
    await offer(stand, "a")
    answer = await claim(stand, "a")
    assert taken(stand, answer) == {"a"}
    assert (answer["unknown"], answer["messages"], answer["parked"]) == ([], [], False)


async def test_a_repeated_claim_takes_new_work_under_the_same_id(stand: Stand) -> None:
    for name in "ab":
        await offer(stand, name)
        assert taken(stand, await claim(stand, "a", "b")) == {name}
    [row] = await stand.sql("select id, executions from claim")
    assert (row["id"], stand.names(row["executions"])) == (ME, {"a", "b"})


async def test_where_there_is_no_room_nothing_is_taken_and_all_is_parked(stand: Stand) -> None:
    await offer(stand, "a")
    answer = await claim(stand, "a", rooms=[(stand.definition, "x", 0)])
    assert answer == {"claimed": [], "unknown": [], "messages": [], "parked": True}
    assert await there(stand, "parked") == {"a"}


async def test_a_worker_takes_known_work_and_looks_up_unknown_work(stand: Stand) -> None:
    definitions = await define(stand, "met.later", "lacking", "elsewhere", "gone", "too.many")
    met_later, lacking, elsewhere, gone, too_many = definitions
    await offer(stand, "known")
    await offer(stand, "not met", met_later)
    await offer(stand, "lacking", lacking)
    await offer(stand, "known elsewhere", queue="work.other")
    await offer(stand, "not met elsewhere", elsewhere, queue="work.other")
    await offer(stand, "known and gone", status="requested")
    await offer(stand, "not met and gone", gone, status="requested")
    tried = len(stand.ids)
    await offer(stand, "one too many", too_many)
    await offer(stand, "too many and gone", status="requested")
    await offer(stand, "too many and lacking", lacking)
    await offer(stand, "not offered")
    answer = await claim(stand, *list(stand.ids)[:-1], take=tried, lacks=[lacking])
    assert taken(stand, answer) == {"known"}
    assert await stand.with_status("running") == {"known"}
    assert (answer["unknown"], answer["parked"]) == ([met_later], True)
    assert {one["queue"]: stand.names(one["ids"]) for one in answer["messages"]} == {
        "work.default": {"one too many"},
        "work.other": {"known elsewhere", "not met elsewhere"},
    }
    assert await there(stand, "parked") == {"lacking", "too many and lacking"}


async def test_claim_returns_labels_if_asked(stand: Stand) -> None:
    """Each of the three ways to read a claim returns them, also a look for a claim with a lost answer."""
    for name in ("of acme", "without", "parked", "other"):
        await offer(stand, name, status="scheduled")
    for name, customer in (("of acme", "acme"), ("parked", "bolt"), ("other", "zenith")):
        await stand.sql(
            "insert into label (execution_id, key, value, tenant, child) values ($1, 'customer', $2, 'public', false)",
            stand.ids[name],
            customer,
        )
    asks = Claimant(ME, ME, [stand.definition], [], reads_labels=True)
    ids = [stand.ids["of acme"], stand.ids["without"]]
    answer = await attempts.claim(stand.session, asks, "work.default", ids, 9)
    expected = {stand.ids["of acme"]: {"customer": "acme"}, stand.ids["without"]: {}}
    assert {attempt.execution_id: attempt.labels for attempt in answer.attempts} == expected
    again = await attempts.claimed(stand.session, ME)
    assert {attempt.execution_id: attempt.labels for attempt in again} == expected
    full = Claimant(ME, new_id(), [stand.definition], [], [(stand.definition, "x", 0)])
    await attempts.claim(stand.session, full, "work.default", [stand.ids["parked"]], 9)
    parked = replace(asks, claim=new_id())
    [attempt] = (await attempts.claim_parked(stand.session, parked, "work.default", 9)).attempts
    assert attempt.labels == {"customer": "bolt"}
    silent = Claimant(ME, new_id(), [stand.definition], [])
    [attempt] = (
        await attempts.claim(stand.session, silent, "work.default", [stand.ids["other"]], 9)
    ).attempts
    assert attempt.labels == {}


async def test_a_claim_returns_carried_values_and_workflow_ancestors(stand: Stand) -> None:
    await stand.add("outermost", "running", kind="workflow")
    await stand.add("workflow", "running", kind="workflow", parent="outermost")
    await offer(stand, "task", parent="workflow")
    await offer(stand, "again", attempt=1)
    await stand.sql(
        "insert into attempt (execution_id, attempt, outcome, error) values ($1, 1, 'deferred', '{\"carry\": 7}')",
        stand.ids["again"],
    )
    answer = await claim(stand, "task", "again")
    told = {
        one["execution_id"]: (one["workflow"], one["root"], one["task"], one["carry"])
        for one in answer["claimed"]
    }
    assert told == {
        stand.ids["task"]: (stand.ids["workflow"], stand.ids["outermost"], "task", None),
        stand.ids["again"]: (None, None, None, "7"),
    }


async def test_the_first_of_an_envelope_are_taken_up_to_executor_room(
    stand: Stand,
) -> None:
    other, free = await define(stand, "other", "free")
    await offer(stand, "one")
    await offer(stand, "other", other)
    await offer(stand, "one too many", other)
    await offer(stand, "free", free)
    await offer(stand, "gone", status="requested")
    await offer(stand, "free too", free)
    rooms = [(stand.definition, "x", 2), (other, "x", 2)]
    envelope = ["free", "gone", "other", "one", "one too many", "free too"]

    async def chosen(take: int) -> list[set[str]]:
        [row] = await stand.sql(
            "select * from choose_for_executors($1, $2, $3::executor_room[])",
            *([stand.ids[name] for name in envelope], take, rooms),
        )
        return [stand.names(row["fitting"]), stand.names(row["full_up"])]

    assert await chosen(1) == [{"free"}, {"one too many"}]
    assert await chosen(3) == [{"free", "other", "one"}, {"one too many"}]
    assert await chosen(9) == [{"free", "other", "one", "free too"}, {"one too many"}]


async def test_work_parked_on_another_queue_is_not_counted_here(stand: Stand) -> None:
    """Whatever its definition is: one before or after those that are parked here."""
    before, lacking, after = await define(stand, "before", "lacking", "after")
    for definition, queue in ((before, "work.other"), (lacking, "work.default"), (after, "work.other")):
        id = await offer(stand, f"{definition}", definition, queue=queue)
        await stand.sql(
            "insert into parked (execution_id, queue, definition_id, ready_at, worker) values ($1, $2, $3, now(), $1)",
            *(id, queue, definition),
        )
    row = await claim_parked(stand.session, [stand.definition], [lacking])
    assert (row["claimed"], row["unknown"], row["waits"]) == ([], [], False)


async def test_a_look_up_of_parked_work_hides_it_from_no_worker(stand: Stand) -> None:
    """Two are told at once; the one that has it would not look again before long."""
    for name in "ab":
        id = await offer(stand, name)
        await stand.sql(
            "insert into parked (execution_id, queue, definition_id, ready_at) values ($1, 'work.default', $2, now())",
            *(id, stand.definition),
        )
    async with stand.home.session().transaction() as tx:
        row = await claim_parked(tx, [], [])
        assert (row["claimed"], row["unknown"], row["waits"]) == ([], [stand.definition], True)
        assert taken(stand, await claim_parked(stand.session, [stand.definition], [])) == {"a", "b"}


async def claim_parked(
    session: Session | Transaction, knows: Sequence[int], lacks: Sequence[int]
) -> dict[str, Any]:
    [row] = await session.fetch(
        "select * from claim_parked($1, $1, 9, 'work.default', $2, $3, '{}')", ME, list(knows), list(lacks)
    )
    return dict(row)
