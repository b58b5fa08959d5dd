"""Attempts that end from outside, that are refused a child, or that cannot go on; and the children that calls start."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any

import pytest

from penstock import AskInquiry, Defer, DurableContext, action
from penstock.engine.durable import run_loop
from penstock.engine.durable.attempt_run import Attempt
from penstock.engine.durable.records import (
    ASK,
    CANCELLED,
    COMPLETED,
    END,
    FAILED,
    GIVEN,
    MAP,
    RUN,
    WAIT_FOR,
    History,
    Key,
    Record,
)
from penstock.errors import ClaimLost, NotFound, ResultNotStorable
from penstock.run.deadlines import TIME_IS_UP
from penstock.run.outcomes import Outcome
from penstock.testing.durable_memory import Memory
from penstock.testing.durable_run import DurableRun
from tests.penstock.engine.durable.attempts import (
    LIMIT,
    Outside,
    attempt_of,
    memory_of_run,
    outcome_of,
    turns,
)

CLEAN = Key("clean", 1)


async def _hang() -> None:
    await asyncio.Event().wait()


async def _note() -> str:
    return "clean"


async def _cleans_up(ctx: DurableContext) -> None:
    try:
        await ctx.step("long", _hang)
    finally:
        await ctx.step("clean", _note)


async def _cleans_up_later(ctx: DurableContext) -> None:
    try:
        await ctx.step("long", _hang)
    finally:
        await ctx.sleep(0.1)
        await ctx.step("clean", _note)


async def _never_cleans_up(ctx: DurableContext) -> None:
    try:
        await ctx.step("long", _hang)
    finally:
        await ctx.step("clean", _hang)


async def _end(
    function: Any, *, asked: bool, message: str = "", grace: float = 10.0, ends_as: str | None = None
) -> Memory:
    """Cancel an attempt of this function while its step runs, and return what is recorded. `ends_as`: the status of a requested
    end."""
    memory = memory_of_run()
    task = asyncio.create_task(attempt_of(Outside(memory, asked=asked), function, grace=grace).run({}))
    await asyncio.sleep(0.1)
    memory.ends_as = ends_as
    task.cancel(message)
    await asyncio.wait({task}, timeout=60)
    assert task.cancelled()
    return memory


async def test_run_that_is_asked_to_end_cleans_up() -> None:
    memory = await _end(_cleans_up, asked=True)
    assert memory.records[CLEAN].status == COMPLETED
    assert memory.records[Key("long", 1)].status == CANCELLED
    assert [key.name for key, record in memory.records.items() if record.kind == END] == ["end/run"]


async def test_run_that_is_asked_to_end_waits_while_it_cleans_up() -> None:
    """A suspended run would give its slot back, and its worker stops."""
    memory = await _end(_cleans_up_later, asked=True)
    assert memory.records[CLEAN].status == COMPLETED


@pytest.mark.parametrize("name", ["step", "version", "child", "given"])
async def test_call_named_end_ends_no_run(name: str) -> None:
    async def function(ctx: DurableContext) -> Any:
        if name == "step":
            await ctx.step("end", _note)
        if name == "version":
            assert ctx.version("end")
        if name == "child":
            await ctx.run("t.child", name="end")
        await ctx.sleep(60)
        return "done"

    async def child() -> str:
        return "cancelled"

    run = DurableRun()
    run.child("t.child", child)
    if name == "given":
        run._memory.records[Key("end", 1)] = Record(Key("end", 1), 0, GIVEN, COMPLETED, '"cancelled"')
    assert await run(action(pack="t", ref="t.ends")(function)) == "done"


async def test_run_is_told_of_its_end_once() -> None:
    """The end is recorded before the attempt begins, and the worker hears of it once more while the run cleans up."""
    begun, free = asyncio.Event(), asyncio.Event()

    async def tidy() -> str:
        begun.set()
        await free.wait()
        return "clean"

    async def cleans_up(ctx: DurableContext) -> None:
        try:
            await ctx.step("long", _hang)
        finally:
            await ctx.step("clean", tidy)

    memory = memory_of_run()
    memory.ends_as = "cancelled"
    task = asyncio.create_task(attempt_of(Outside(memory, asked=True), cleans_up, grace=10.0).run({}))
    await asyncio.wait_for(begun.wait(), 60)
    task.cancel()
    await asyncio.sleep(0.05)
    free.set()
    await asyncio.wait({task}, timeout=60)
    assert memory.records[CLEAN].status == COMPLETED


async def _speaks(ctx: DurableContext) -> None:
    try:
        await ctx.sleep("9d")
    except asyncio.CancelledError:
        raise asyncio.CancelledError("in its own words") from None


async def _is_silent(ctx: DurableContext) -> None:
    await asyncio.gather(ctx.sleep("9d"), ctx.sleep("9d"))


@pytest.mark.parametrize(
    ("function", "message"),
    [(_speaks, "in its own words"), (_is_silent, "the run was asked to end as timeout")],
)
async def test_error_of_ended_run_says_why(function: Any, message: str) -> None:
    memory = memory_of_run()
    memory.ends_as = "timeout"
    outcome = await outcome_of(Outside(memory), function)
    assert outcome.error is not None
    assert (outcome.error.message, outcome.error.retryable) == (message, False)


async def test_replayed_end_of_run_says_why() -> None:
    memory = memory_of_run()
    memory.records[Key(END, 1)] = Record(Key(END, 1), 0, END, COMPLETED, told=1)
    outcome = await outcome_of(Outside(memory), _is_silent)
    assert outcome.error is not None
    assert outcome.error.message == "the run was asked to end as cancelled"


async def test_attempt_whose_time_is_up_cleans_up() -> None:
    memory = await _end(_cleans_up, asked=False, message=TIME_IS_UP)
    assert memory.records[CLEAN].status == COMPLETED


async def _echo(text: str) -> str:
    return text


async def _records_why(ctx: DurableContext) -> None:
    try:
        await ctx.step("long", _hang)
    except asyncio.CancelledError as error:
        await ctx.step("why", _echo, str(error))
        raise


@pytest.mark.parametrize(
    ("asked", "ends_as", "status"),
    [
        (False, None, "timeout"),
        (True, "timeout", "timeout"),
        (True, "cancelled", "cancelled"),
        (True, None, "cancelled"),
    ],
)
async def test_running_function_is_told_how_it_ends(asked: bool, ends_as: str | None, status: str) -> None:
    """The next attempt is told the same, although the end of an attempt is requested nowhere."""
    memory = await _end(_records_why, asked=asked, message=TIME_IS_UP, ends_as=ends_as)
    why = f"the run was asked to end as {status}"
    assert memory.records[Key("why", 1)].result == f'"{why}"'
    memory.ends_as = None
    outcome = await outcome_of(Outside(memory), _records_why)
    assert outcome.error is not None
    assert outcome.error.message == why


class Unreachable(Outside):
    """An attempt whose records cannot be read again."""

    async def requested_end(self) -> str | None:
        raise ConnectionError


async def test_function_is_told_its_end_without_database() -> None:
    memory = memory_of_run()
    task = asyncio.create_task(attempt_of(Unreachable(memory, asked=True), _cleans_up).run({}))
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.wait({task}, timeout=60)
    assert memory.records[CLEAN].status == COMPLETED


class Loading(Outside):
    """An attempt that is asked for its end while it loads its records."""

    async def load(self) -> History:
        await asyncio.sleep(0.2)
        return await super().load()


@pytest.mark.parametrize(("asked", "recorded"), [(True, ["end/run", "clean"]), (False, [])])
async def test_attempt_that_ends_while_it_loads(asked: bool, recorded: list[str]) -> None:
    memory = memory_of_run()
    task = asyncio.create_task(attempt_of(Loading(memory, asked=asked), _cleans_up).run({}))
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.wait({task}, timeout=60)
    assert task.cancelled()
    assert [key.name for key in memory.records] == recorded


async def test_attempt_of_a_stopping_worker_records_nothing() -> None:
    memory = await _end(_cleans_up, asked=False)
    assert memory.records == {}


async def test_clean_up_ends_with_its_grace() -> None:
    memory = memory_of_run()
    task = asyncio.create_task(attempt_of(Outside(memory, asked=True), _never_cleans_up, grace=0.1).run({}))
    await asyncio.sleep(0.1)
    task.cancel()
    outcome = await asyncio.wait_for(task, 60)
    assert outcome.error is not None
    assert "asked to end as cancelled, and had not cleaned up after 0.1 s" in outcome.error.message
    assert CLEAN not in memory.records


async def _never_hears(ctx: DurableContext) -> None:
    try:
        await ctx.sleep("9d")
    finally:
        await ctx.signal("never sent")


async def _leaves_what_never_hears(ctx: DurableContext) -> None:
    task = asyncio.create_task(_never_hears(ctx))
    await asyncio.sleep(0)
    raise ValueError(f"{task} goes on")


@pytest.mark.parametrize("function", [_never_cleans_up, _never_hears, _leaves_what_never_hears])
@pytest.mark.parametrize("ends_as", ["cancelled", "timeout"])
async def test_clean_up_of_run_that_was_asleep_ends_with_its_grace(function: Any, ends_as: str) -> None:
    """The end was requested before the attempt began: nothing from outside ends the attempt, which stays on its worker."""
    memory = memory_of_run()
    memory.ends_as = ends_as
    async with asyncio.timeout(20):
        outcome = await attempt_of(Outside(memory), function, grace=0.1).run({})
    assert outcome.error is not None
    why = f"the run was asked to end as {ends_as}, and had not cleaned up after 0.1 s"
    assert (outcome.kind, outcome.error.message, outcome.error.retryable) == ("failed", why, False)


async def _finishes() -> str:
    await asyncio.sleep(0.15)
    return "done"


async def _finishes_soon() -> str:
    await asyncio.sleep(0.02)
    return "done"


async def _fails_and_is_undone(ctx: DurableContext) -> None:
    ctx.on_failure(_note)
    ctx.on_failure(_finishes)
    raise ValueError("its own error")


async def _fails_beside_steps(ctx: DurableContext) -> None:
    async def cleans_up(name: str, function: Callable[[], Any]) -> None:
        try:
            await ctx.step(name, function, retry={"max_attempts": 2, "initial_delay": 50})
        finally:
            await ctx.step("clean", _note)

    ctx.on_failure(_note)
    tasks = [
        asyncio.create_task(cleans_up(name, function))
        for name, function in (("long", _hang), ("short", _finishes_soon), ("flaky", _raises_soon))
    ]
    await ctx.step("first", _note)
    raise ValueError(f"{len(tasks)} tasks go on")


async def _raises_soon() -> None:
    await _finishes_soon()
    raise ConnectionError


async def _fails_in_its_clean_up(ctx: DurableContext) -> None:
    ctx.on_failure(_note)
    try:
        await ctx.step("long", _hang)
    finally:
        raise ValueError("its own error")


async def _defers_in_its_clean_up(ctx: DurableContext) -> None:
    ctx.on_failure(_note)
    try:
        await ctx.step("long", _hang)
    except asyncio.CancelledError:
        raise Defer(delay=1) from None


UNDONE = Key("on failure _note", 1)


@pytest.mark.parametrize("retried", [True, False])
@pytest.mark.parametrize("function", [_fails_and_is_undone, _fails_in_its_clean_up, _defers_in_its_clean_up])
async def test_failed_function_with_requested_end_is_undone(function: Any, retried: bool) -> None:
    """No other attempt follows, whatever the retry policy says. What undoes the function is not cancelled."""
    memory = memory_of_run()
    memory.ends_as = "cancelled"
    outcome = await outcome_of(Outside(memory), function, retried=retried)
    assert memory.records[UNDONE].status == COMPLETED
    assert outcome.error is not None
    assert (outcome.kind, outcome.error.retryable) == ("failed", False)
    why = "the run was asked to end as cancelled" if function is _defers_in_its_clean_up else "its own error"
    assert outcome.error.message == why


@pytest.mark.parametrize(
    ("function", "retried"),
    [
        (_fails_and_is_undone, False),
        (_fails_beside_steps, True),
        (_fails_in_its_clean_up, True),
        (_defers_in_its_clean_up, False),
    ],
)
async def test_failed_function_is_undone_when_its_end_is_requested(function: Any, retried: bool) -> None:
    """The request comes while the run is undone, or while steps finish that the next attempt would use."""
    memory = memory_of_run()
    attempt = attempt_of(Outside(memory, asked=True), function, retried=retried)
    task = asyncio.create_task(attempt.run({}))
    await asyncio.sleep(0.1)
    memory.ends_as = "cancelled"
    assert UNDONE not in memory.records
    task.cancel()
    await asyncio.wait({task}, timeout=60)
    assert task.cancelled()
    assert memory.records[UNDONE].status == COMPLETED
    before = {key: record.status for key, record in memory.records.items()}
    again = await outcome_of(Outside(memory), function, retried=retried)
    assert again.kind == "failed"
    assert {key: record.status for key, record in memory.records.items()} == before


async def _fails_at_once(ctx: DurableContext) -> None:
    ctx.on_failure(_note)
    raise ConnectionError


async def _defers_at_once(ctx: DurableContext) -> None:
    ctx.on_failure(_note)
    if (await ctx.step("first", _note)) == "clean":
        raise Defer(delay=1)


async def _asks_at_once(ctx: DurableContext) -> None:
    ctx.on_failure(_note)
    if (await ctx.step("first", _note)) == "clean":
        raise AskInquiry("Well?")


@pytest.mark.parametrize("function", [_fails_at_once, _defers_at_once, _asks_at_once])
@pytest.mark.parametrize("turns", range(12))
async def test_end_requested_in_last_turns_of_attempt_undoes(function: Any, turns: int) -> None:
    """An attempt fails, is deferred or asks a question, so another attempt follows. The request to end comes `turns` turns of the
    event loop after the start of the attempt, before its decision or after it."""
    memory = memory_of_run()
    task = asyncio.create_task(attempt_of(Outside(memory, asked=True), function, retried=True).run({}))
    for _ in range(turns):
        await asyncio.sleep(0)
    memory.ends_as = "cancelled"
    task.cancel()
    await asyncio.wait({task}, timeout=60)
    if not task.cancelled():  # the attempt was over, or its outcome lets another one follow
        await outcome_of(Outside(memory), function, retried=True)
    assert turns == 0 or memory.records[UNDONE].status == COMPLETED


async def test_steps_that_finish_after_a_failure_are_told_before_the_end() -> None:
    memory = memory_of_run()
    attempt = attempt_of(Outside(memory, asked=True), _fails_beside_steps, retried=True)
    task = asyncio.create_task(attempt.run({}))
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.wait({task}, timeout=60)
    statuses = {str(key): record.status for key, record in memory.records.items()}
    steps = {name: statuses[name] for name in ("1/long", "2/short", "3/flaky")}
    assert steps == {"1/long": CANCELLED, "2/short": COMPLETED, "3/flaky": CANCELLED}
    assert [statuses[f"{branch}/clean"] for branch in (1, 2, 3)] == [COMPLETED] * 3


async def _returns_nevertheless(ctx: DurableContext) -> str:
    ctx.on_failure(_note)
    try:
        await ctx.step("long", _hang)
    except asyncio.CancelledError:
        return "returned"
    return "never cancelled"


async def test_function_that_returns_when_it_is_asked_to_end_completes() -> None:
    memory = memory_of_run()
    task = asyncio.create_task(attempt_of(Outside(memory, asked=True), _returns_nevertheless).run({}))
    await asyncio.sleep(0.1)
    memory.ends_as = "cancelled"
    task.cancel()
    outcome = await asyncio.wait_for(task, 60)
    assert (outcome.kind, outcome.result) == ("completed", "returned")
    again = await outcome_of(Outside(memory), _returns_nevertheless)
    assert (again.kind, again.result) == ("completed", "returned")
    assert UNDONE not in memory.records


async def test_function_that_returns_after_its_own_time_limit_has_timed_out() -> None:
    """The end of the run was not requested: the caller of the attempt reports the timeout."""
    task = asyncio.create_task(attempt_of(Outside(memory_of_run()), _returns_nevertheless).run({}))
    await asyncio.sleep(0.1)
    task.cancel(TIME_IS_UP)
    await asyncio.wait({task}, timeout=60)
    assert task.cancelled()


async def test_refused_child_is_refused_in_each_attempt() -> None:
    seen: list[Any] = []

    async def function(ctx: DurableContext) -> str:
        with pytest.raises(NotFound) as refused:
            await ctx.run("t.child", n=1)
        seen.append((refused.value.message, refused.value.hint))
        return "refused"

    memory = memory_of_run()
    for refuses in (True, False):
        outcome = await attempt_of(Outside(memory, refused=refuses), function).run({})
        assert (outcome.kind, outcome.result) == ("completed", "refused")
    assert seen == [("there is no t.child", "Apply it.")] * 2
    [record] = memory.records.values()
    assert (record.kind, record.status, record.told) == (RUN, FAILED, 1)


async def test_attempt_that_cannot_go_on_has_failed_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_loop, "TURNS_LIMIT", 10)

    async def spins(ctx: DurableContext) -> None:
        while True:
            await asyncio.sleep(0)

    outcome: Outcome = await attempt_of(Outside(memory_of_run()), spins).run({})
    assert outcome.kind == "failed"
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.retryable) == ("DefinitionError", False)


Call = Callable[[DurableContext], Awaitable[Any]]
ITEMS = [{"n": 1}, {"n": 2}, {"n": 3}]
QUESTION = {"prompt": "Well?", "schema": None, "assignee": None, "timeout": None, "default": None}
EVENT: dict[str, Any] = {"trigger": "shop.paid", "filter": None, "names": {}, "timeout": None}
STARTS: dict[str, tuple[Call, str, str, str, dict[str, Any]]] = {
    "run": (lambda ctx: ctx.run("t.child", {"n": 1}, m=2), RUN, "child", "t.child", {"n": 1, "m": 2}),
    "run by name": (lambda ctx: ctx.run("t.child", name="other"), RUN, "other", "t.child", {}),
    "map": (
        lambda ctx: ctx.map("t.child", ITEMS, concurrency=2), MAP, "child", "t.child", {"items": ITEMS, "concurrency": 2},
    ),
    "map one at a time": (
        lambda ctx: ctx.map("t.child", ITEMS, concurrency=1), MAP, "child", "t.child", {"items": ITEMS, "concurrency": 1},
    ),
    "map of all at once": (
        lambda ctx: ctx.map("t.child", ITEMS), MAP, "child", "t.child", {"items": ITEMS, "concurrency": 3},
    ),
    "map of nothing, by name": (
        lambda ctx: ctx.map("t.child", [], name="other"), MAP, "other", "t.child", {"items": [], "concurrency": 1},
    ),
    "ask": (lambda ctx: ctx.ask("Well?"), ASK, "ask", "inquiry", QUESTION),
    "ask with all options": (
        lambda ctx: ctx.ask("Well?", schema={"type": "string"}, assignee="ada", timeout="1m", default="no", name="who"),
        ASK, "who", "inquiry",
        {**QUESTION, "schema": {"type": "string"}, "assignee": "ada", "timeout": 60, "default": "no"},
    ),
    "wait_for": (lambda ctx: ctx.wait_for("shop.paid"), WAIT_FOR, "wait_for", "wait_for_event", EVENT),
    "wait_for with all options": (
        lambda ctx: ctx.wait_for("shop.paid", when="event.payload.id == id", timeout=5, name="paid", id=7),
        WAIT_FOR, "paid", "wait_for_event",
        {**EVENT, "filter": "event.payload.id == id", "names": {"id": 7}, "timeout": 5},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STARTS)
async def test_call_starts_child_with_its_parameters(name: str) -> None:
    call, kind, child, target, parameters = STARTS[name]
    backend = Outside(memory_of_run(), refused=True)

    async def function(ctx: DurableContext) -> None:
        await call(ctx)

    assert (await attempt_of(backend, function).run({})).kind == "failed"
    [start] = backend.starts
    assert (start.record.kind, start.record.key, start.target) == (kind, Key(child, 1), target)
    assert start.parameters == parameters


async def _returns(ctx: DurableContext) -> str:
    return "x" * LIMIT


async def _defers(ctx: DurableContext) -> None:
    raise Defer(delay=1, state="x" * LIMIT)


@pytest.mark.parametrize("function", [_returns, _defers])
async def test_large_result_of_function_is_refused(function: Any) -> None:
    outcome = await outcome_of(Outside(memory_of_run()), function)
    assert outcome.error is not None
    assert outcome.error.type.endswith("ResultNotStorable")


async def test_large_state_is_refused_where_the_call_stands() -> None:
    async def function(ctx: DurableContext) -> None:
        with pytest.raises(ResultNotStorable):
            ctx.set("stage", "x" * LIMIT)

    assert (await outcome_of(Outside(memory_of_run()), function)).kind == "completed"


async def _fail() -> None:
    raise ValueError("it failed")


class LosesItsClaim(Outside):
    """An attempt that learns that its claim is lost, when it records the result of the step `short`."""

    async def record(self, records: Sequence[Record]) -> Mapping[Key, Record]:
        if any(record.key.name == "short" and record.status == COMPLETED for record in records):
            raise ClaimLost("the attempt was taken over")
        return await super().record(records)


def _failing_attempt(backend: Outside) -> tuple[Attempt, asyncio.Event]:
    """Return an attempt that fails and is tried again while two steps run, one of which ends then. The event is set once it
    has failed."""
    failed = asyncio.Event()

    async def function(ctx: DurableContext) -> None:
        await asyncio.gather(
            ctx.step("long", _hang), ctx.step("short", failed.wait), ctx.step("fails", _fail)
        )

    def retried(outcome: Outcome) -> bool:
        failed.set()
        return True

    return Attempt(backend, function, limit=LIMIT, warm=5.0, grace=3600.0, retried=retried), failed


async def test_failed_attempt_without_claim_waits_for_no_running_step() -> None:
    attempt, _ = _failing_attempt(LosesItsClaim(memory_of_run()))
    async with asyncio.timeout(60):
        with pytest.raises(ClaimLost):
            await attempt.run({})


async def test_failed_attempt_of_stopping_worker_waits_for_no_running_step() -> None:
    """The worker does not wait for the grace: the result of the step would not be recorded."""
    attempt, failed = _failing_attempt(Outside(memory_of_run()))
    task = asyncio.create_task(attempt.run({}))
    async with asyncio.timeout(60):
        await failed.wait()
        await turns()
        task.cancel()
        await asyncio.wait({task})
    assert task.cancelled()


async def _with_a_change(ctx: DurableContext) -> str:
    await ctx.step("first", _note)
    if ctx.version("new"):
        await ctx.step("added", _note)
    await ctx.sleep(60)
    return "new"


async def _without_the_change(ctx: DurableContext) -> str:
    await ctx.step("first", _note)
    await ctx.step("old", _note)
    return "old"


async def _that_ends_before_the_change(ctx: DurableContext) -> str:
    await ctx.step("first", _note)
    return "old"


@pytest.mark.parametrize("older", [_without_the_change, _that_ends_before_the_change])
async def test_older_code_leaves_run_with_new_change(older: Callable[..., Any]) -> None:
    """The run waits as long as the change is old, from 2 s to a minute. Then newer code goes on."""
    memory = memory_of_run()
    assert (await attempt_of(Outside(memory), _with_a_change).run({})).kind == "suspended"
    records = deepcopy(memory.records)
    began = records[Key("new", 1)].at
    assert began is not None
    for age, delay in ((0, 2), (8, 8), (3000, 60)):
        memory.now = began + timedelta(seconds=age)
        outcome = await attempt_of(Outside(memory), older, rollout=3600).run({})
        assert outcome.kind == "suspended"
        awaited = outcome.awaited or {}
        waits = datetime.fromisoformat(awaited["until"]) - memory.now
        assert delay <= waits.total_seconds() < delay + 1
        assert awaited["causes"] == ["a worker with code for the change 'new'"]
        assert memory.records == records, "older code records nothing"
    memory.now += timedelta(seconds=61)
    outcome = await attempt_of(Outside(memory), _with_a_change, rollout=3600).run({})
    assert (outcome.kind, outcome.result) == ("completed", "new")


@pytest.mark.parametrize("older", [_without_the_change, _that_ends_before_the_change])
async def test_code_without_an_old_change_stops(older: Callable[..., Any]) -> None:
    memory = memory_of_run()
    await attempt_of(Outside(memory), _with_a_change).run({})
    memory.now += timedelta(seconds=3600)
    outcome = await attempt_of(Outside(memory), older, rollout=3600).run({})
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.retryable) == ("ReplayMismatch", False)


async def test_older_code_that_cleans_up_stops_at_a_new_change() -> None:
    memory = memory_of_run()
    await attempt_of(Outside(memory), _with_a_change).run({})
    memory.records[Key(END, 1)] = Record(Key(END, 1), 0, END, COMPLETED, '"cancelled"')
    outcome = await attempt_of(Outside(memory), _without_the_change, rollout=3600).run({})
    assert outcome.error is not None
    assert outcome.error.type == "ReplayMismatch"
