"""Starts with a debounce time in a whole installation: one execution for a burst, over every entry point."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest

from penstock import Limit, action, current
from penstock.errors import Conflict, InvalidInput
from penstock.operate.why import why
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport


@action(pack="docs")
async def index(doc: str, n: int) -> int:
    return n


@action(ref="docs.index", limits=[Limit(1, by="doc")])
async def later_index(doc: str, n: int, more: str = "") -> int:
    return n


@action(pack="docs")
async def edit(doc: str, n: int, transactional: bool = False) -> str:
    """Start `docs.index` in a burst twice."""
    options: dict[str, Any] = {
        "debounce": "700ms",
        "debounce_key": doc,
        "at_most": timedelta(minutes=1),
        "transactional": transactional,
    }
    ids = [await current().start(index.call(doc=doc, n=n + more), **options) for more in range(2)]
    return str(ids[-1])


@action(pack="docs", executor="process")
def edit_in_process(doc: str, n: int) -> str:
    return str(current().sync.start("docs.index", {"doc": doc, "n": n}, debounce="700ms", debounce_key=doc))


@action(pack="docs")
async def again(n: int) -> None:
    """Start this action in a burst that it shares with its own execution."""
    if n:
        options: dict[str, Any] = {"debounce": "100ms", "transactional": n % 2 == 0}
        await current().start(again.call(n=n - 1), **options)


EXECUTIONS = """
select e.id, e.status, e.priority, p.params::text as params from execution e join payload p on p.execution_id = e.id
order by e.created_at
"""


async def start(house: Installation, doc: str, n: int, **options: Any) -> UUID:
    options = {"debounce": "2s", "debounce_key": doc, **options}
    return await house.client.start("docs.index", {"doc": doc, "n": n}, **options)


async def ended(house: Installation) -> list[list[Any]]:
    """Return the document and the number of each execution, once all have ended."""
    await house.quiet()
    rows = await house.rows(EXECUTIONS)
    assert {row["status"] for row in rows} == {"completed"}
    parameters = [orjson.loads(row["params"]) for row in rows]
    return sorted([values["doc"], values["n"]] for values in parameters)


async def test_starts_of_a_burst_have_one_execution(house: Installation) -> None:
    await house.start(index)
    # Starts at the same time have no order among them, so the last one follows when the others have returned.
    ids = await asyncio.gather(*(start(house, doc, n) for n in range(9) for doc in "ab"))
    ids += await asyncio.gather(*(start(house, doc, 9) for doc in "ab"))
    assert len(set(ids)) == 2
    assert {await house.client.result(id) for id in set(ids)} == {9}
    assert await ended(house) == [["a", 9], ["b", 9]]
    assert await start(house, "a", 10) not in ids
    await house.sound()


async def test_starts_within_actions_join_bursts(house: Installation) -> None:
    await house.start(index, edit, edit_in_process)
    first = await start(house, "a", 0)
    edits = [
        await house.client.start(edit, {"doc": "a", "n": 1}),
        await house.client.start(edit_in_process, {"doc": "a", "n": 2}),
        await house.client.start(edit, {"doc": "a", "n": 3, "transactional": True}),
    ]
    results = [await house.client.result(id, timeout=20) for id in edits]
    assert results[2] == "None"
    await house.quiet()
    joined = await house.rows("select execution_id::text as id from joined_start order by at")
    assert len(joined) == 5 or len(await house.rows("select from start_burst")) == 1
    effects = await house.rows("select parent, id from effect")
    assert {row["parent"] for row in effects} == set(edits)
    started = await house.rows(
        "select e.id from execution e join definition d on d.id = e.definition_id where d.ref = 'docs.index'"
    )
    assert {row["id"] for row in effects} | {first} == {row["id"] for row in started}
    assert len(started) < 4
    await house.sound()


async def test_start_within_an_action_is_refused_as_by_a_client(house: Installation) -> None:
    @action(pack="docs")
    async def refused() -> list[str]:
        found = []
        wrong: list[dict[str, Any]] = [{"debounce": "1h", "delay": 5}, {"at_most": "5s"}, {"debounce": "2d"}]
        for options in wrong:
            try:
                await current().start("docs.index", {"doc": "a", "n": 1}, **options)
            except InvalidInput as error:
                found.append(str(error))
        return found

    await house.start(index, refused)
    assert await house.client.run(refused, timeout=20) == [
        "`debounce` and `delay` are both given",
        "debounce_key, at_most or keep is given without debounce",
        "debounce is longer than a day",
    ]


async def test_action_may_start_itself_in_a_burst(house: Installation) -> None:
    await house.start(again)
    await house.client.start(again, {"n": 4}, debounce="100ms")
    await house.quiet(seconds=30)
    rows = await house.rows("select (params ->> 'n')::integer as n from payload")
    assert sorted(row["n"] for row in rows) == [0, 1, 2, 3, 4]
    await house.sound()


async def test_start_waits_for_no_execution_that_has_begun(house: Installation) -> None:
    """The end of an attempt locks its execution, and then the burst that it starts. A start that locked them in the other
    order would deadlock."""
    await house.executor()
    await house.apply(index)
    first = await start(house, "a", 1, debounce=0.1)
    await house.until("select 1 from execution where status = 'scheduled'")
    async with house.session.transaction() as tx:
        await tx.fetch("select from execution where id = $1 for no key update", first)
        async with asyncio.timeout(5):
            assert await start(house, "a", 2, debounce="1h") != first


async def test_history_of_a_burst_has_its_first_and_last_place(house: Installation) -> None:
    await house.apply(index)
    for n in range(20):
        first = await start(house, "a", n, debounce=0.5)
    [requested] = await house.rows("select ready_at from history")
    await house.sound()
    await house.executor()
    await house.until("select 1 from execution where status = 'scheduled'")
    _, scheduled = await house.rows("select old, new, ready_at from history order by at")
    [row] = await house.rows("select ready_at from execution")
    assert (scheduled["old"], scheduled["new"]) == ("requested", "scheduled")
    assert requested["ready_at"] < scheduled["ready_at"] == row["ready_at"]
    assert [move.new for move in await house.client.history(first)] == ["requested", "scheduled"]
    await house.sound()


async def test_first_parameters_are_kept_if_the_start_says_so(house: Installation) -> None:
    await house.start(index)
    first = await start(house, "a", 1, keep="first", priority=3, labels={"customer": "acme"})
    assert await start(house, "a", 2, keep="first", priority=5) == first
    assert await ended(house) == [["a", 1]]
    [row] = await house.rows(EXECUTIONS)
    assert row["priority"] == 3
    assert [dict(row) for row in await house.rows("select key, value from label")] == [
        {"key": "customer", "value": "acme"}
    ]
    await house.sound()


async def test_last_start_gives_priority_labels_and_author(house: Installation) -> None:
    await house.apply(index)
    first = await start(house, "a", 1, priority=3, labels={"customer": "acme", "old": "1"}, by="ada")
    assert await start(house, "a", 2, priority=5, labels={"customer": "globex"}, by="bob") == first
    [row] = await house.rows(EXECUTIONS)
    assert (row["priority"], orjson.loads(row["params"])) == (5, {"doc": "a", "n": 2})
    assert [dict(row) for row in await house.rows("select key, value from label")] == [
        {"key": "customer", "value": "globex"}
    ]
    [origin] = await house.rows("select origin ->> 'by' as by from payload")
    assert origin["by"] == "bob"


async def test_longest_time_bounds_the_postponement(house: Installation) -> None:
    await house.apply(index)
    options: dict[str, Any] = {"debounce": "1h", "at_most": "70m"}
    await start(house, "a", 1, **options)
    [burst] = await house.rows("select first_at, closes_at from start_burst")
    assert burst["closes_at"] - burst["first_at"] == timedelta(hours=1)
    await house.rows("update start_burst set first_at = first_at - interval '30 minutes' returning 1")
    id = await start(house, "a", 2, **options)
    [burst] = await house.rows("select first_at, closes_at from start_burst")
    [row] = await house.rows("select not_before, ready_at from execution")
    [timer] = await house.rows("select due_at from timer")
    assert burst["closes_at"] - burst["first_at"] == timedelta(minutes=70)
    assert burst["closes_at"] == row["not_before"] == row["ready_at"] == timer["due_at"]
    answer = await why(house.session, id, house.settings())
    assert answer.sentence.endswith(", unless another request with the same debounce key comes first.")
    assert f"It starts at {burst['closes_at']:%Y-%m-%d %H:%M:%S} UTC at the latest." in answer.says
    assert "So far, 2 requests share this execution." in answer.says
    assert "The execution has the parameters of the last request." in answer.all_details


async def test_times_count_from_the_end_of_the_burst(house: Installation) -> None:
    await house.apply(index)
    bounds = {"timeouts": {"schedule_to_start": 5, "total": 9}}
    for n in (1, 2, 3):
        await start(house, "a", n, debounce="1h", options=bounds)
    [burst] = await house.rows("select closes_at from start_burst")
    timers = await house.rows("select kind, due_at from timer order by kind")
    assert [(row["kind"], round((row["due_at"] - burst["closes_at"]).total_seconds())) for row in timers] == [
        ("ready", 0),
        ("start", 5),
        ("total", 9),
    ]


async def test_full_burst_closes_with_its_last_start(house: Installation) -> None:
    await house.apply(index)
    first = await start(house, "a", 1, debounce="1h")
    await house.rows("update start_burst set starts = 998 returning 1")
    assert await start(house, "a", 2, debounce="1h") == first
    [row] = await house.rows("select not_before > clock_timestamp() as waits from execution")
    assert row["waits"]
    assert await start(house, "a", 3, debounce="1h") == first
    [row] = await house.rows("select not_before > clock_timestamp() as waits from execution")
    assert not row["waits"]
    assert await start(house, "a", 4, debounce="1h") != first


async def test_same_key_joins_a_burst_once(house: Installation) -> None:
    await house.apply(index)
    first = await start(house, "a", 1, debounce="1h")
    again = [await start(house, "a", 2, debounce="1h", key="k") for _ in range(2)]
    again += await asyncio.gather(*(start(house, "a", 3, debounce="1h", key="m") for _ in range(3)))
    assert set(again) == {first}
    [burst] = await house.rows("select starts from start_burst")
    assert burst["starts"] == 3
    with pytest.raises(Conflict, match="has this key or belongs to the open burst"):
        await start(house, "a", 4, debounce="1h", key="k")
    await house.rows("update execution set not_before = null returning 1")
    assert await start(house, "a", 2, debounce="1h", key="k") == first
    assert await start(house, "a", 2, debounce="1h", key="new") != first


@pytest.mark.parametrize(
    "options",
    [
        {"keep": "first"},
        {"budget": {"tokens": 5}},
        {"max_depth": 3},
        {"options": {"timeouts": {"total": 5}}},
    ],
)
async def test_start_that_differs_from_its_burst_is_refused(
    house: Installation, options: dict[str, Any]
) -> None:
    await house.apply(index)
    first = await start(house, "a", 1, debounce="1h")
    with pytest.raises(Conflict, match=str(first)):
        await start(house, "a", 2, debounce="1h", key="k", **options)
    assert await start(house, "a", 2, debounce="1h", key="k") == first
    assert await start(house, "b", 2, debounce="1h", key="l", **options) != first


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delay": 5}, "`debounce` and `delay` are both given"),
        ({"at": datetime(2100, 1, 1, tzinfo=UTC)}, "`debounce` and `at` are both given"),
        ({"expires_at": datetime(2100, 1, 1, tzinfo=UTC)}, "`debounce` and `expires_at` are both given"),
        ({"keep": "all"}, "is for rules"),
        ({"keep": "middle"}, "`keep` is neither 'last' nor 'first'"),
        ({"debounce": "2d"}, "debounce is longer than a day"),
        ({"debounce": 0}, "debounce must be longer than 0 s"),
        ({"at_most": "soon"}, "at_most is not a duration"),
        ({"debounce_key": ""}, "the debounce_key is empty"),
        ({"options": {"debounce": {}}}, "`options` has the key `debounce`"),
        ({"connection": object()}, "`debounce` and `connection` are both given"),
        ({"debounce": None}, "is given without debounce"),
    ],
)
async def test_option_that_makes_no_sense_is_refused(
    house: Installation, options: dict[str, Any], words: str
) -> None:
    await house.apply(index)
    with pytest.raises(InvalidInput, match=words) as refusal:
        await start(house, "a", 1, **options)
    assert refusal.value.hint
    assert not await house.rows("select from execution")


async def test_burst_is_over_once_its_execution_was_moved(house: Installation) -> None:
    """A cancelled or rescheduled execution, and one of an earlier version of the action, is joined by no start."""
    await house.apply(index)
    first = await start(house, "a", 1, debounce="1h")
    await house.client.cancel(first)
    second = await start(house, "a", 2, debounce="1h")
    await house.client.reschedule(second, delay=7200, by="ada")
    third = await start(house, "a", 3, debounce="1h")
    await house.apply(later_index)
    fourth = await start(house, "a", 4, debounce="1h")
    assert len({first, second, third, fourth}) == 4
    await house.sound()


async def test_tenants_have_bursts_of_their_own(house: Installation) -> None:
    await house.apply(index)
    ids = [await start(house, "a", 1, debounce="1h", tenant=tenant) for tenant in ("acme", "globex", "acme")]
    assert ids[0] == ids[2] != ids[1]


async def test_run_returns_the_result_of_the_burst(house: Installation) -> None:
    await house.start(index)
    options: dict[str, Any] = {"debounce": 0.7, "timeout": 30}
    results = await asyncio.gather(
        *(house.client.run("docs.index", {"doc": "a", "n": 7}, **options) for _ in range(5))
    )
    assert results == [7] * 5
    assert await ended(house) == [["a", 7]]


async def test_held_execution_is_not_joined(house: Installation) -> None:
    await house.start(index)
    await house.client.holds.hold("action", "docs.index", by="ada")
    first = await start(house, "a", 1, debounce=0.3)
    await house.until("select 1 from held_execution")
    assert await start(house, "a", 2, debounce="1h") != first


async def test_limits_hold_for_the_execution_of_a_burst(house: Installation) -> None:
    await house.start(later_index)
    await asyncio.gather(*(start(house, doc, n) for n in range(4) for doc in "ab"))
    await asyncio.gather(*(start(house, doc, 4) for doc in "ab"))
    assert await ended(house) == [["a", 4], ["b", 4]]
    await house.sound()
