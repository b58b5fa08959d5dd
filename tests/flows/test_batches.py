"""Batches in a whole installation: one call for several executions, of which each stays its own."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

import pytest

from penstock import (
    Batch,
    Breaker,
    Defer,
    Item,
    Limit,
    NonRetryable,
    Secret,
    Trigger,
    action,
    each,
    workflow,
)
from penstock.errors import ConfigurationError, ExecutionFailed
from penstock.language.loading import Definitions
from penstock.service.assembly import Stop, assembled
from penstock_worker import main as worker
from tests.flows.installation import AS_USED, Installation
from tests.flows.reading import metrics
from tests.servers.process import free_port

PATIENT = 60
"""Seconds that no test waits: a batch with this wait is called because it is full, or because its worker stops."""
ONCE = {"max_attempts": 1}
SOON = {"max_attempts": 3, "initial_delay": 0.01, "jitter": 0}

CALLS: dict[str, list[list[UUID]]] = defaultdict(list)
"""The executions of each call, by action."""
gate = asyncio.Event()
seen: dict[str, Any] = {}


@dataclass
class Number:
    n: int
    colour: str = ""


def called(name: str, items: list[Item[Number]]) -> None:
    CALLS[name].append([item.execution_id for item in items])


@action(pack="batches", batch=Batch(50, within=PATIENT))
async def double(items: list[Item[Number]]) -> list[int]:
    called("double", items)
    return [2 * item.input.n for item in items]


@action(pack="batches", batch=Batch(20, within=PATIENT))
def in_a_thread(items: list[Item[Number]]) -> list[int]:
    called("in_a_thread", items)
    return [2 * item.input.n for item in items]


@action(pack="batches", batch=Batch(20, within="1s"), executor="process")
def in_a_process(items: list[Item[Number]]) -> list[list[Any]]:
    return [[2 * item.input.n, str(item.execution_id), item.attempt, len(items)] for item in items]


@action(pack="batches", batch=Batch(10, within=PATIENT, by="colour"))
async def by_colour(items: list[Item[Number]]) -> list[list[str]]:
    called("by_colour", items)
    return [sorted({item.input.colour for item in items})] * len(items)


@action(pack="batches", batch=Batch(10, within=PATIENT, by="labels.customer"), searchable=["colour"])
async def by_customer(items: list[Item[Number]]) -> list[list[str]]:
    called("by_customer", items)
    return [sorted({item.input.colour for item in items})] * len(items)


@workflow(pack="batches", run_labels={"customer": "bolt"})
def of_one_customer(numbers: list[int]) -> Any:
    return by_customer(n=each(numbers), colour="blue")


@action(pack="batches", batch=Batch(9, within="200ms"))
async def of_any_tenant(items: list[Item[Number]]) -> list[int]:
    called("of_any_tenant", items)
    return [item.input.n for item in items]


@action(pack="batches", batch=Batch(6, within="500ms"), retry=SOON)
async def partly(items: list[Item[Number]]) -> list[int | Exception]:
    """Fail 1 for good, and 2 at its first attempt."""
    called("partly", items)
    results: list[int | Exception] = []
    for item in items:
        if item.input.n == 1:
            results.append(NonRetryable("one is refused"))
        elif item.input.n == 2 and item.attempt == 1:
            results.append(ConnectionError("not yet"))
        else:
            results.append(item.attempt)
    return results


@action(pack="batches", batch=Batch(4, within="500ms"), retry=SOON)
async def raising(items: list[Item[Number]]) -> list[int]:
    called("raising", items)
    if any(item.attempt == 1 for item in items):
        raise OSError("down")
    return [item.attempt for item in items]


@action(pack="batches", batch=Batch(3, within=PATIENT), retry=ONCE)
async def miscounting(items: list[Item[Number]]) -> list[int]:
    return [1]


@action(pack="batches", batch=Batch(3, within=PATIENT), retry=ONCE)
async def held(items: list[Item[Number]]) -> list[bool]:
    called("held", items)
    try:
        await gate.wait()
    except asyncio.CancelledError:
        seen["ended"] = True
        raise
    return [item.cancelled for item in items]


@action(pack="batches", batch=Batch(9, within="3s"), timeout=0.3, retry=ONCE)
async def brief(items: list[Item[Number]]) -> list[int]:
    if any(item.input.n < 0 for item in items):
        await asyncio.sleep(60)
    return [item.input.n for item in items]


@action(pack="batches", batch=Batch(3, within=PATIENT))
async def waiting(items: list[Item[Number]]) -> list[Any]:
    called("waiting", items)
    return [
        Defer(delay=0.1, state=item.input.n) if item.input.n == 1 and item.state is None else [item.state]
        for item in items
    ]


@action(pack="batches", batch=Batch(9, within="200ms"), limits=Limit(2))
async def limited(items: list[Item[Number]]) -> list[int]:
    called("limited", items)
    return [item.input.n for item in items]


@action(pack="batches", batch=Batch(9, within="200ms"), breaker=Breaker(3, of=9, probe="1h"), retry=ONCE)
async def broken(items: list[Item[Number]]) -> list[int | Exception]:
    return [ConnectionError("down") if item.input.n < 3 else item.input.n for item in items]


@dataclass
class Card:
    n: int
    card: Annotated[str, Secret]


@action(pack="batches", batch=Batch(2, within=PATIENT), retry=ONCE)
async def telling(items: list[Item[Card]]) -> list[int]:
    """Print and raise the secrets of all items."""
    text = " and ".join(item.input.card for item in items)
    print(f"paid with {text}")
    for item in items:
        item.log(f"{item.input.n} beside {text}")
    raise ValueError(text)


happened = Trigger("batches.happened", schema={"n": "integer"})


@action(pack="batches", batch=Batch(2, within=PATIENT), retry=ONCE, limits=Limit(100, cost=5, unit="tokens"))
async def publishing(items: list[Item[Number]]) -> list[Any]:
    results: list[Any] = []
    for item in items:
        item.cost(tokens=item.input.n)
        await item.publish("batches.happened", {"n": item.input.n}, transactional=True)
        results.append(NonRetryable("no") if item.input.n == 2 else str(await item.start(plain, {})))
    return results


@action(pack="batches")
async def plain() -> str:
    return "plain"


@action(pack="batches")
async def blocked() -> None:
    await gate.wait()


@action(pack="batches", batch=Batch(3, within=PATIENT), retry=ONCE, on_worker_loss="fail")
async def once(items: list[Item[Number]]) -> list[int]:
    called("once", items)
    await gate.wait()
    return [item.attempt for item in items]


class Counted:
    """The number of running calls, and the most that ever ran."""

    now = most = 0

    @classmethod
    async def run(cls) -> None:
        cls.now += 1
        cls.most = max(cls.most, cls.now)
        await asyncio.sleep(0.004)
        cls.now -= 1


@action(pack="batches", batch=Batch(20, within="100ms"))
async def counted_batch(items: list[Item[Number]]) -> list[int]:
    await Counted.run()
    return [item.input.n for item in items]


@action(pack="batches")
async def counted(n: int) -> int:
    await Counted.run()
    return n


@workflow(pack="batches")
def chain(n: int) -> Any:
    return counted(n=counted(n=counted_batch(n=n)))


@workflow(pack="batches")
def many(numbers: list[int]) -> Any:
    return double(n=each(numbers))


@pytest.fixture(autouse=True)
def fresh() -> None:
    CALLS.clear()
    seen.clear()
    gate.clear()


async def begin(house: Installation, *actions: Any, **settings: Any) -> None:
    await house.start(*actions, **{**AS_USED, **settings})


async def start(house: Installation, of: Any, numbers: Any, **more: Any) -> list[UUID]:
    return await house.client.start_many(of, [{"n": n, **more} for n in numbers])


async def results(house: Installation, ids: list[UUID]) -> list[Any]:
    return [await house.client.result(id, timeout=60) for id in ids]


async def running(house: Installation, count: int) -> None:
    await house.until("select from execution where status = 'running' having count(*) = $1", count)


def sizes(of: str) -> list[int]:
    return [len(call) for call in CALLS[of]]


async def test_worker_with_one_slot_fills_whole_batches(house: Installation) -> None:
    port = free_port()
    await house.apply(double)
    await house.executor(**AS_USED)
    await house.worker(double, concurrency=1, port=port, **AS_USED)
    ids = await start(house, double, range(200))
    assert await results(house, ids) == [2 * n for n in range(200)]
    assert sizes("double") == [50] * 4
    assert sorted(id for call in CALLS["double"] for id in call) == sorted(ids)
    await house.quiet()
    assert await house.rows("select from attempt") == []
    figures = await metrics(port)
    assert figures['penstock_action_batch_items_count{action="batches.double"}'] == 4
    assert figures['penstock_action_batch_items_sum{action="batches.double"}'] == 200
    assert figures['penstock_run_seconds_count{action="batches.double"}'] == 200
    assert figures["penstock_free_slots"] == 1
    await house.sound()


async def test_single_starts_share_a_call(house: Installation) -> None:
    await begin(house, double, concurrency=5)
    ids = await asyncio.gather(*(house.client.start(double, {"n": n}) for n in range(50)))
    assert await results(house, ids) == [2 * n for n in range(50)]
    assert sizes("double") == [50]
    await house.sound()


async def test_plain_functions_get_batches_in_threads(house: Installation) -> None:
    await begin(house, in_a_thread, concurrency=2)
    assert await results(house, await start(house, in_a_thread, range(40))) == [2 * n for n in range(40)]
    assert sizes("in_a_thread") == [20, 20]
    await house.sound()


async def test_functions_get_batches_in_child_processes(house: Installation) -> None:
    await begin(house, in_a_process, concurrency=2)
    ids = await start(house, in_a_process, range(30))
    done = await results(house, ids)
    assert [row[:3] for row in done] == [[2 * n, str(id), 1] for n, id in enumerate(ids)]
    assert max(row[3] for row in done) > 1
    await house.sound()


async def test_groups_are_kept_apart_and_filled_with_one_slot(house: Installation) -> None:
    await begin(house, by_colour, concurrency=1)
    colours = ["red", "green", "blue", "grey"]
    rows = [{"n": n, "colour": colours[n % 4]} for n in range(80)]
    ids = await house.client.start_many(by_colour, rows)
    assert await results(house, ids) == [[row["colour"]] for row in rows]
    assert sorted(sizes("by_colour")) == [10] * 8
    await house.quiet()
    await house.sound()


async def test_label_groups_the_items(house: Installation) -> None:
    """The label comes from a start, from the workflow, or is missing. The parameters of all items are alike."""
    await begin(house, by_customer, of_one_customer, concurrency=2)
    starts = {}
    for n in range(30):
        customer = [None, "acme", "zenith"][n % 3]
        labels = {"customer": customer} if customer else {}
        starts[await house.client.start(by_customer, {"n": n, "colour": "red"}, labels=labels)] = customer
    run = await house.client.start(of_one_customer, {"numbers": list(range(10))})
    await results(house, [*starts, run])
    assert sorted(sizes("by_customer")) == [10] * 4
    for call in CALLS["by_customer"]:
        assert len({starts.get(id, "bolt") for id in call}) == 1
    await house.quiet()
    await house.sound()


async def test_tenants_never_share_a_call(house: Installation) -> None:
    await begin(house, of_any_tenant)
    ours = await start(house, of_any_tenant, range(3))
    theirs = await house.client.start_many(of_any_tenant, [{"n": n} for n in range(3)], tenant="acme")
    assert await results(house, [*ours, *theirs]) == [0, 1, 2] * 2
    for call in CALLS["of_any_tenant"]:
        assert set(call) <= set(ours) or set(call) <= set(theirs)


async def test_item_fails_and_is_retried_alone(house: Installation) -> None:
    await begin(house, partly)
    ids = await start(house, partly, range(6))
    with pytest.raises(ExecutionFailed, match="one is refused"):
        await house.client.result(ids[1], timeout=60)
    assert await results(house, [ids[0], *ids[2:]]) == [1, 2, 1, 1, 1]
    assert CALLS["partly"] == [ids, [ids[2]]]
    rows = await house.rows("select outcome from attempt")
    assert [row["outcome"] for row in rows].count("failed") >= 1
    await house.quiet()
    await house.sound()


async def test_raised_error_fails_and_retries_each_item(house: Installation) -> None:
    await begin(house, raising)
    ids = await start(house, raising, range(4))
    assert await results(house, ids) == [2] * 4
    await house.quiet()
    await house.sound()


async def test_wrong_number_of_results_fails_all(house: Installation) -> None:
    await begin(house, miscounting)
    ids = await start(house, miscounting, range(3))
    for id in ids:
        with pytest.raises(ExecutionFailed, match=r"BatchMismatch: .*a batch of 3 and returned 1 results"):
            await house.client.result(id, timeout=60)
    await house.sound()


async def test_parameters_that_do_not_fit_fail_their_item_alone(house: Installation) -> None:
    """The parameters do not fit, as if the definition came from another version of the code."""
    loose = held.with_schemas(parameters={"type": "object", "properties": {"n": {}}})
    gate.set()
    await begin(house, loose)
    good = await start(house, loose, [1])
    [odd] = await start(house, loose, ["many"])
    with pytest.raises(ExecutionFailed, match=r"InvalidInput: parameters\.n"):
        await house.client.result(odd, timeout=60)
    good += await start(house, loose, [2, 3])
    assert await results(house, good) == [False] * 3
    assert sizes("held") == [3]
    await house.sound()


async def test_item_that_is_cancelled_leaves_its_batch(house: Installation) -> None:
    gate.set()
    await begin(house, held)
    first, second = await start(house, held, range(2))
    await running(house, 2)
    why = await house.client.why(first)
    assert (
        "The execution is collected into a batch. The batch runs with 3 executions, or after 60 s."
        in why.says
    )
    await house.client.cancel(first, reason="not needed")
    await house.until("select from execution where id = $1 and status = 'cancelled'", first)
    others = await start(house, held, range(2))
    assert await results(house, [second, *others]) == [False] * 3
    assert CALLS["held"] == [[second, *others]]
    await house.quiet()
    await house.sound()


async def test_item_is_cancelled_while_its_call_goes_on(house: Installation) -> None:
    await begin(house, held)
    ids = await start(house, held, range(3))
    await running(house, 3)
    await house.until("select from execution where status = 'running' having count(*) = 3")
    async with asyncio.timeout(20):
        while not CALLS["held"]:
            await asyncio.sleep(0.01)
    await house.client.cancel(ids[0], reason="not needed")
    await house.until("select from execution where id = $1 and status = 'cancelled'", ids[0])
    assert "ended" not in seen
    gate.set()
    assert await results(house, ids[1:]) == [False, False]
    assert await house.rows("select from result where execution_id = $1 and result is not null", ids[0]) == []
    await house.quiet()
    await house.sound()


async def test_call_is_cancelled_with_its_last_item(house: Installation) -> None:
    await begin(house, held, concurrency=1)
    ids = await start(house, held, range(3))
    async with asyncio.timeout(20):
        while not CALLS["held"]:
            await asyncio.sleep(0.01)
    for id in ids:
        await house.client.cancel(id, reason="not needed")
    await house.until("select from execution where status = 'cancelled' having count(*) = 3")
    assert seen == {"ended": True}
    gate.set()
    assert await results(house, await start(house, held, range(3))) == [False] * 3, "the slot is free again"
    await house.quiet()
    await house.sound()


async def test_timeout_counts_from_the_call(house: Installation) -> None:
    """The wait for the batch is longer than the timeout, and than the time after which executors end an attempt."""
    await house.start(brief)
    [id] = await start(house, brief, [7])
    assert await house.client.result(id, timeout=60) == 7
    assert await house.rows("select from attempt") == []
    slow = await start(house, brief, [-1, 1])
    for one in slow:
        with pytest.raises(ExecutionFailed) as error:
            await house.client.result(one, timeout=60)
        assert error.value.status == "timeout"
    await house.sound()


async def test_item_defers_itself_and_keeps_its_state(house: Installation) -> None:
    await begin(house, waiting)
    ids = await start(house, waiting, range(3))
    assert await results(house, [ids[0], ids[2]]) == [[None], [None]]
    await house.until("select from execution where id = $1 and attempt = 2", ids[1])
    await start(house, waiting, [5, 6])
    assert await house.client.result(ids[1], timeout=60) == [1]
    await house.quiet()
    await house.sound()


async def test_limit_admits_each_item_on_its_own(house: Installation) -> None:
    await begin(house, limited)
    ids = await start(house, limited, range(7))
    assert await results(house, ids) == list(range(7))
    assert max(sizes("limited")) == 2
    await house.quiet()
    await house.sound()


async def test_breaker_counts_the_end_of_each_item(house: Installation) -> None:
    await begin(house, broken)
    ids = await start(house, broken, range(9))
    assert await results(house, ids[3:]) == list(range(3, 9))
    await house.until("select from breaker")
    [late] = await start(house, broken, [9])
    await house.until("select from waiter where execution_id = $1", late)
    await house.client.breakers.close("batches.broken", at_once=True)
    assert await house.client.result(late, timeout=60) == 9
    await house.quiet()
    await house.sound()


async def test_no_item_shows_the_secrets_of_another(house: Installation) -> None:
    await begin(house, telling)
    cards = ["4111-1111-1111-1111", "5500-0000-0000-0004"]
    ids = await house.client.start_many(telling, [{"n": n, "card": card} for n, card in enumerate(cards)])
    for id in ids:
        with pytest.raises(ExecutionFailed) as error:
            await house.client.result(id, timeout=60)
        assert not any(card in str(error.value) for card in cards)
    await house.until("select from log_line having count(*) >= 4")
    lines = await house.rows("select execution_id, stream, line from log_line order by execution_id")
    assert not any(card in row["line"] for row in lines for card in cards)
    assert [row["execution_id"] for row in lines if row["stream"] == "stdout"] == [ids[0]]
    [reference] = [row["line"] for row in lines if "batch of 2" in row["line"]]
    assert str(ids[0]) in reference
    assert [row["line"][:8] for row in lines if "beside" in row["line"]] == ["0 beside", "1 beside"]


async def test_items_publish_start_and_cost_on_their_own(house: Installation) -> None:
    await begin(house, publishing, plain, happened)
    ids = await start(house, publishing, [1, 2])
    started = await house.client.result(ids[0], timeout=60)
    assert await house.client.result(UUID(started), timeout=60) == "plain"
    with pytest.raises(ExecutionFailed, match="no"):
        await house.client.result(ids[1], timeout=60)
    await house.quiet()
    rows = await house.rows("select payload ->> 'n' as n from event")
    assert [row["n"] for row in rows] == ["1"], "a failed item publishes nothing"
    await house.sound()


async def test_worker_refuses_a_route_without_batches(house: Installation) -> None:
    settings = house.settings(route_executors={"default": "command"})
    async with assembled(settings, role="worker") as parts:
        with pytest.raises(ConfigurationError, match="the route default takes no batches"):
            await worker.work(parts, Definitions([double]), Stop())


async def test_fan_out_of_a_workflow_shares_calls(house: Installation) -> None:
    await begin(house, many, double)
    id = await house.client.start(many, {"numbers": list(range(100))})
    assert await house.client.result(id, timeout=60) == [2 * n for n in range(100)]
    assert sizes("double") == [50, 50]
    await house.quiet()
    await house.sound()


async def test_full_worker_still_fills_its_batch_and_leaves_the_rest(house: Installation) -> None:
    """With all slots taken, other work goes back to its route at once, for other workers."""
    await begin(house, double, blocked, plain, concurrency=2)
    [hog] = await house.client.start_many(blocked, [{}])
    await running(house, 1)
    some = await start(house, double, range(10))
    await running(house, 11)
    others = await house.client.start_many(plain, [{}] * 10)
    more = await start(house, double, range(10, 50))
    assert await results(house, [*some, *more]) == [2 * n for n in range(50)]
    assert sizes("double") == [50]
    assert await results(house, others) == ["plain"] * 10
    gate.set()
    await house.client.result(hog, timeout=60)
    await house.quiet()
    await house.sound()


async def test_batch_fills_by_priority_on_an_ordered_route(house: Installation) -> None:
    await begin(house, double, blocked, plain, concurrency=1)
    hog = await house.client.start(blocked)
    await running(house, 1)
    ids = await start(house, double, range(90))
    others = await house.client.start_many(plain, [{}] * 5)
    urgent = await house.client.start_many(double, [{"n": n} for n in range(10)], priority=9)
    await house.until("select from ordered_route")
    gate.set()
    assert await results(house, ids) == [2 * n for n in range(90)]
    assert await results(house, urgent) == [2 * n for n in range(10)]
    assert sizes("double") == [50, 50]
    assert set(urgent) <= set(CALLS["double"][0])
    assert await results(house, [hog, *others]) == [None, *["plain"] * 5]
    await house.quiet()
    await house.sound()


async def test_ends_of_a_batch_free_one_slot(house: Installation) -> None:
    """The tasks that follow are claimed in the slots that there are, and not in one for each end."""
    Counted.now = Counted.most = 0
    await begin(house, chain, counted_batch, counted, concurrency=2)
    ids = await house.client.start_many(chain, [{"n": n} for n in range(120)])
    assert await results(house, ids) == list(range(120))
    assert Counted.most == 2
    await house.quiet()
    assert await house.rows("select from attempt") == []
    await house.sound()


async def test_items_that_run_at_most_once_are_called_once(house: Installation) -> None:
    """A worker that stops fails the items whose function was called, and hands back those that only waited."""
    await house.apply(once)
    await house.executor(**AS_USED)
    leaving = await house.worker(once, concurrency=1, **AS_USED)
    ids = await start(house, once, range(3))
    async with asyncio.timeout(20):
        while not CALLS["once"]:
            await asyncio.sleep(0.01)
    leaving.patience = 0.0
    await house.ended(leaving)
    for id in ids:
        with pytest.raises(ExecutionFailed, match="WorkerLost"):
            await house.client.result(id, timeout=60)
    assert CALLS["once"] == [ids]
    gate.set()
    await house.worker(once, **AS_USED)
    assert await results(house, await start(house, once, range(3))) == [1] * 3
    await house.quiet()
    await house.sound()


async def test_stopping_worker_calls_its_unfilled_batch(house: Installation) -> None:
    await house.apply(double)
    await house.executor(**AS_USED)
    leaving = await house.worker(double, **AS_USED)
    ids = await start(house, double, range(7))
    await running(house, 7)
    assert CALLS["double"] == []
    await house.ended(leaving)
    assert await results(house, ids) == [2 * n for n in range(7)]
    assert sizes("double") == [7]
    await house.sound()


async def test_worker_that_stops_at_once_hands_its_items_back(house: Installation) -> None:
    await house.apply(held)
    await house.executor(**AS_USED)
    leaving = await house.worker(held, **AS_USED)
    called_first = await start(house, held, range(3))
    waiting_still = await start(house, held, range(2))
    async with asyncio.timeout(20):
        while not CALLS["held"]:
            await asyncio.sleep(0.01)
    await running(house, 5)
    leaving.patience = 0.0
    await house.ended(leaving)
    assert seen == {"ended": True}
    rows = await house.rows("select recoveries, failures from execution where finished_at is null")
    assert {(row["recoveries"], row["failures"]) for row in rows} == {(0, 0)}
    gate.set()
    await house.worker(held, **AS_USED)
    [last] = await start(house, held, [9])
    assert await results(house, [*called_first, *waiting_still, last]) == [False] * 6
    await house.quiet()
    await house.sound()
