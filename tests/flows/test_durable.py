"""Durable functions: they go on where they were, whatever became of the worker."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from penstock import AskInquiry, DurableContext, Later, NonRetryable, Trigger, action, current, workflow
from penstock.attempts.owned_attempt import OwnedAttempt
from penstock.errors import Conflict, ExecutionFailed, NotFound, StepTimedOut
from penstock.language.definitions.action import Action
from penstock.operate.durable_steps import steps_of
from penstock.operate.executions import described
from penstock.run.outcomes import Outcome
from penstock_worker.attempts.runner import Runner
from penstock_worker.direct.direct_backend import DirectBackend
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport

CALLS: Counter[str] = Counter()
MAY_FAIL = asyncio.Event()
paid = Trigger("dur.paid")


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    CALLS.clear()


async def note(name: str) -> str:
    CALLS[name] += 1
    return name.upper()


def note_plain(name: str) -> dict[str, Any]:
    CALLS[name] += 1
    return {"z": name, "a": 1.0}


async def fail(times: int) -> int:
    CALLS["fail"] += 1
    if CALLS["fail"] <= times:
        raise ConnectionError("away")
    return CALLS["fail"]


@action(pack="dur")
async def double(n: int) -> int:
    CALLS["double"] += 1
    return 2 * n


@action(pack="dur")
async def steps(ctx: DurableContext, n: int) -> list[Any]:
    first = await ctx.step("first", note, "a")
    plain = await ctx.step("plain", note_plain, "b")
    stamp = (ctx.now().isoformat(), ctx.random(), str(ctx.uuid()))
    tried = await ctx.step("tried", fail, 2, retry={"max_attempts": 3, "initial_delay": 0.01})
    many = [await ctx.step("many", double, i) for i in range(n)]
    return [first, list(plain), tried, many, list(stamp)]


@action(pack="dur")
async def sleeper(ctx: DurableContext) -> str:
    await ctx.step("before", note, "before")
    await ctx.sleep(1.2)
    await ctx.sleep(0.05)
    return str(await ctx.step("after", note, "after"))


@action(pack="dur")
async def parent(ctx: DurableContext) -> list[Any]:
    single = await ctx.run(double, n=1)
    several = await asyncio.gather(*(ctx.run("dur.double", {"n": n}) for n in range(5)))
    mapped = await ctx.map(double, [{"n": n} for n in range(30)], concurrency=7, name="all")
    return [single, several, mapped]


@action(pack="dur")
async def asker(ctx: DurableContext) -> Any:
    return await ctx.ask("Who?", schema={"type": "string"}, assignee="ada")


@action(pack="dur")
async def waiter(ctx: DurableContext, order: int) -> Any:
    try:
        await ctx.wait_for(paid, when="event.payload.order == order", timeout=0.2, name="early", order=-1)
    except StepTimedOut:
        ctx.set("late", True)
    event = await ctx.wait_for(paid, when="event.payload.order == order", order=order)
    return event["payload"]


@action(pack="dur", retry={"max_attempts": 2, "initial_delay": 0.01})
async def retried(ctx: DurableContext) -> int:
    await ctx.step("once", note, "once")
    tries: int = await ctx.step("flaky", fail, 1)
    return tries


async def run(house: Installation, ref: str, **params: Any) -> Any:
    return await house.client.result(await house.client.start(ref, params), timeout=20)


async def test_steps_are_recorded_and_give_values_as_json_keeps_them(house: Installation) -> None:
    await house.start(steps, double)
    result = await run(house, "dur.steps", n=3)
    assert result[:4] == ["A", ["z", "a"], 3, [0, 2, 4]]
    rows = await house.rows("select name, ordinal, kind, status, tries from step order by place")
    assert [tuple(row) for row in rows][:2] == [
        ("first", 1, "step", "completed", 1),
        ("plain", 1, "step", "completed", 1),
    ]
    assert ("tried", 1, "step", "completed", 3) in [tuple(row) for row in rows]
    assert len(rows) == 9
    await house.quiet()
    await house.sound()


async def test_a_sleep_gives_the_worker_back_and_nothing_before_it_runs_again(house: Installation) -> None:
    await house.start(sleeper)
    id = await house.client.start("dur.sleeper")
    await house.until("select 1 from execution where id = $1 and status = 'waiting'", id)
    assert not await house.rows("select 1 from claim")
    assert await house.client.result(id, timeout=20) == "AFTER"
    assert CALLS == {"before": 1, "after": 1}
    assert {step.status for step in await steps_of(house.session, id)} == {"completed"}
    await house.quiet()
    await house.sound()


async def test_children_are_executions_of_their_own(house: Installation) -> None:
    await house.start(parent, double)
    assert await run(house, "dur.parent") == [2, [0, 2, 4, 6, 8], [2 * n for n in range(30)]]
    assert CALLS["double"] == 36
    await house.quiet()
    await house.sound()


async def test_a_function_waits_for_humans_and_for_events(house: Installation) -> None:
    await house.start(asker, waiter, paid)
    id = await house.client.start("dur.asker")
    await house.until("select 1 from inquiry where status = 'created'")
    [inquiry] = await house.rows("select execution_id from inquiry")
    await house.client.answer(inquiry["execution_id"], "bob", by="ada")
    assert await house.client.result(id, timeout=20) == "bob"
    other = await house.client.start("dur.waiter", {"order": 7})
    await house.until(
        "select 1 from event_wait w join execution e on e.id = w.execution_id where e.task = 'wait_for'"
    )
    event = await house.client.publish("dur.paid", {"order": 7, "sum": 3})
    assert await house.client.result(other, timeout=20) == {"order": 7, "sum": 3}
    [continued] = (await house.client.event(event))["continued"]
    assert (continued["run"], continued["task"], continued["action"]) == (other, "wait_for", "dur.waiter")
    await house.quiet()
    await house.sound()


async def test_a_retry_runs_the_step_again_that_failed(house: Installation) -> None:
    await house.start(retried)
    assert await run(house, "dur.retried") == 2
    assert CALLS == {"once": 1, "fail": 2}


@action(pack="dur")
async def cleaning(ctx: DurableContext, seconds: float) -> None:
    ctx.on_failure(note, "undone first")
    await ctx.step("book", note, "book")
    ctx.on_failure(note, "undone")
    try:
        await ctx.sleep(seconds)
        await ctx.step("never", note, "never")
    finally:
        await ctx.step("clean", note, "clean")


@action(pack="dur")
async def failing(ctx: DurableContext) -> None:
    ctx.on_failure(note, "undone")
    await ctx.step("book", note, "book")
    await ctx.step("break", fail, 9)


@action(pack="dur")
async def told(ctx: DurableContext) -> list[Any]:
    first = await ctx.signal("word")
    try:
        await ctx.signal("never", timeout=0.05)
    except StepTimedOut:
        ctx.set("late", True)
    return [first, await ctx.signal("word", timeout="1h")]


@pytest.mark.parametrize("seconds", [3600, 0.9])
async def test_a_cancelled_function_cleans_up_and_undoes(house: Installation, seconds: float) -> None:
    await house.start(cleaning, suspend_after=1.0)
    id = await house.client.start("dur.cleaning", {"seconds": seconds})
    await house.until("select 1 from step where kind = 'sleep'")
    if seconds > 1:
        await house.until("select 1 from suspended")
    assert await house.client.cancel(id, reason="typo (command:ada)") == 1
    with pytest.raises(ExecutionFailed) as failed:
        await house.client.result(id, timeout=20)
    assert failed.value.status == "cancelled"
    assert CALLS == {"book": 1, "clean": 1, "undone": 1, "undone first": 1}
    assert (await house.client.why(id)).sentence.endswith(" ago: typo (command:ada).")
    document = await described(house.session, id)
    assert document is not None
    assert document["error"]["message"] == "typo (command:ada)"
    assert not document["error"].get("traceback")
    await house.quiet()
    await house.sound()


async def undo_slowly() -> None:
    CALLS["undone slowly"] += 1
    await asyncio.sleep(0.3)


@action(pack="dur", retry={"max_attempts": 3, "initial_delay": 0.01})
async def fails_early(ctx: DurableContext, hangs: bool) -> None:
    """Fail for good, or so that it would be tried again, beside a step that hangs."""
    ctx.on_failure(note, "undone")
    ctx.on_failure(undo_slowly)
    if hangs:
        task = asyncio.create_task(ctx.step("hangs", asyncio.Event().wait))
        await ctx.step("mark", note, "begun")
        raise ConnectionError(f"{task} goes on")
    raise NonRetryable("for good")


@pytest.mark.parametrize("hangs", [True, False])
async def test_a_failed_function_that_is_cancelled_is_undone(house: Installation, hangs: bool) -> None:
    await house.start(fails_early, grace=20.0)  # a busy machine may take longer than a second
    id = await house.client.start("dur.fails_early", {"hangs": hangs})
    while not CALLS["begun" if hangs else "undone slowly"]:
        await asyncio.sleep(0.01)
    if hangs:
        await house.until("select 1 from step where name = 'mark' and told is not null")
    assert await house.client.cancel(id) == 1
    with pytest.raises(ExecutionFailed) as failed:
        await house.client.result(id, timeout=20)
    assert failed.value.status == "cancelled"
    assert {"undone": 1, "undone slowly": 1} | ({"begun": 1} if hangs else {}) == CALLS
    await house.quiet()
    await house.sound()


@action(pack="dur", retry={"max_attempts": 3, "initial_delay": 3600, "max_delay": 3600})
async def fails_when_told(ctx: DurableContext) -> None:
    ctx.on_failure(note, "undone")
    await ctx.step("fails", wait_and_fail)


async def wait_and_fail() -> None:
    CALLS["begun"] += 1
    await MAY_FAIL.wait()
    raise ConnectionError("away")


async def test_cancelled_function_that_fails_is_undone_at_once(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its attempt fails before the worker learns of the cancellation: the next attempt does not wait for its delay."""
    monkeypatch.setattr(Runner, "cancel", lambda runner, ids: None)
    MAY_FAIL.clear()
    await house.start(fails_when_told)
    id = await house.client.start("dur.fails_when_told")
    while not CALLS["begun"]:
        await asyncio.sleep(0.01)
    assert await house.client.cancel(id) == 1
    MAY_FAIL.set()
    with pytest.raises(ExecutionFailed) as failed:
        await house.client.result(id, timeout=20)
    assert failed.value.status == "cancelled"
    assert CALLS == {"begun": 1, "undone": 1}
    await house.quiet()
    await house.sound()


@action(pack="dur")
async def never_clean(ctx: DurableContext, seconds: float) -> None:
    try:
        await ctx.sleep(seconds)
    finally:
        CALLS["cleans"] += 1
        await ctx.step("hangs", asyncio.Event().wait)


async def test_cancelled_function_whose_attempt_has_not_begun_is_undone(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker receives the request when it has claimed the attempt, and before the first step of the attempt's task."""
    start = Runner._start

    def cancelled_at_once(runner: Runner, owned: OwnedAttempt) -> None:
        start(runner, owned)
        if owned.event.attempt == 2:
            runner.cancel([owned.event.execution_id])

    monkeypatch.setattr(Runner, "_start", cancelled_at_once)
    await house.start(cleaning, suspend_after=1.0)
    id = await house.client.start("dur.cleaning", {"seconds": 3600})
    await house.until("select 1 from suspended")
    assert await house.client.cancel(id) == 1
    with pytest.raises(ExecutionFailed) as failed:
        await house.client.result(id, timeout=20)
    assert failed.value.status == "cancelled"
    assert CALLS == {"book": 1, "clean": 1, "undone": 1, "undone first": 1}
    await house.quiet()
    await house.sound()


QUESTIONS = {
    "question": AskInquiry("Well?"),
    "question to go on": AskInquiry("Well?", resume=True),
    "question with a deadline": AskInquiry("Well?", timeout=0.3),
    "wait outside": Later(),
    "wait outside with a deadline": Later(timeout=0.3),
}


@action(pack="dur")
async def asks_by_raising(ctx: DurableContext, how: str, at_once: bool = True) -> None:
    ctx.on_failure(note, "undone")
    await ctx.step("book", note, "book")
    if not at_once:
        await ctx.step("wait", MAY_FAIL.wait)
    raise QUESTIONS[how]


@pytest.mark.parametrize("how", ["question", "question to go on", "wait outside"])
async def test_cancelled_function_that_asks_by_raising_is_undone(house: Installation, how: str) -> None:
    await house.start(asks_by_raising)
    id = await house.client.start("dur.asks_by_raising", {"how": how})
    await house.until("select 1 from execution where id = $1 and status = 'waiting'", id)
    assert await house.client.cancel(id) == 1
    await _is_undone(house, id, "cancelled")


@pytest.mark.parametrize("how", ["question with a deadline", "wait outside with a deadline"])
async def test_function_whose_question_times_out_is_undone(house: Installation, how: str) -> None:
    await house.start(asks_by_raising)
    await _is_undone(house, await house.client.start("dur.asks_by_raising", {"how": how}), "timeout")


@action(pack="dur")
async def goes_on_with_a_default(ctx: DurableContext) -> Any:
    ctx.on_failure(note, "undone")
    if not current().answers:
        raise AskInquiry("Well?", timeout=0.3, default="yes", resume=True)
    return [*current().answers, await ctx.step("book", note, "book")]


async def test_function_goes_on_with_the_default_of_its_question(house: Installation) -> None:
    await house.start(goes_on_with_a_default)
    id = await house.client.start("dur.goes_on_with_a_default")
    assert await house.client.result(id, timeout=20) == ["yes", "BOOK"]
    await house.quiet()
    await house.sound()


@pytest.mark.parametrize("how", ["question", "question to go on", "wait outside"])
async def test_function_that_asks_after_its_cancellation_is_undone(
    house: Installation, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The function asks before the worker learns of the cancellation."""
    monkeypatch.setattr(Runner, "cancel", lambda runner, ids: None)
    MAY_FAIL.clear()
    await house.start(asks_by_raising)
    id = await house.client.start("dur.asks_by_raising", {"how": how, "at_once": False})
    await house.until("select 1 from step where name = 'book'")
    assert await house.client.cancel(id) == 1
    MAY_FAIL.set()
    await _is_undone(house, id, "cancelled")


async def _is_undone(house: Installation, id: UUID, status: str) -> None:
    with pytest.raises(ExecutionFailed) as failed:
        await house.client.result(id, timeout=20)
    assert failed.value.status == status
    assert CALLS == {"book": 1, "undone": 1}
    assert await house.rows("select 1 from inquiry where status = 'created'") == []
    await house.quiet()
    await house.sound()


@action(pack="dur")
async def returns_at_once(ctx: DurableContext) -> str:
    ctx.on_failure(note, "undone")
    await ctx.step("book", note, "book")
    return "returned"


async def test_function_that_is_cancelled_while_its_result_is_stored_completes(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores, may_store, cancelled = asyncio.Event(), asyncio.Event(), asyncio.Event()
    put_away, cancel = DirectBackend.put_away, Runner.cancel

    async def store(backend: DirectBackend, owned: OwnedAttempt, outcome: Outcome) -> Outcome:
        stores.set()
        await may_store.wait()
        return await put_away(backend, owned, outcome)

    def note_cancel(runner: Runner, ids: Sequence[UUID]) -> None:
        cancel(runner, ids)
        if ids:
            cancelled.set()

    monkeypatch.setattr(DirectBackend, "put_away", store)
    monkeypatch.setattr(Runner, "cancel", note_cancel)
    await house.start(returns_at_once)
    id = await house.client.start("dur.returns_at_once")
    await asyncio.wait_for(stores.wait(), 20)
    assert await house.client.cancel(id) == 1
    await asyncio.wait_for(cancelled.wait(), 20)
    may_store.set()
    assert await house.client.result(id, timeout=20) == "returned"
    assert CALLS == {"book": 1}
    await house.quiet()
    await house.sound()


@pytest.mark.parametrize("seconds", [3600, 0.9])
async def test_function_that_is_cancelled_twice_ends_at_once(house: Installation, seconds: float) -> None:
    await house.start(never_clean, suspend_after=1.0, grace=300)
    id = await house.client.start("dur.never_clean", {"seconds": seconds})
    await house.until("select 1 from step where kind = 'sleep'")
    if seconds > 1:
        await house.until("select 1 from suspended")
    assert await house.client.cancel(id) == 1
    while not CALLS["cleans"]:
        await asyncio.sleep(0.01)
    assert await house.client.cancel(id) == 1
    with pytest.raises(ExecutionFailed) as failed:
        await house.client.result(id, timeout=20)
    assert failed.value.status == "cancelled"
    await house.quiet()
    await house.sound()


async def test_function_of_two_cancels_at_the_same_time_ends_at_once(house: Installation) -> None:
    """The worker learns of the second cancel together with the first."""
    await house.start(never_clean, suspend_after=60.0, grace=300)
    id = await house.client.start("dur.never_clean", {"seconds": 50})
    await house.until("select 1 from step where kind = 'sleep'")
    await house.rows("select messages from cancel_nested(array[$1::uuid], 'first')", id)
    assert await house.client.cancel(id) == 1
    with pytest.raises(ExecutionFailed) as failed:
        await house.client.result(id, timeout=20)
    assert failed.value.status == "cancelled"
    await house.quiet()
    await house.sound()


async def test_heartbeat_tells_a_function_of_a_second_cancel(house: Installation) -> None:
    """The worker has missed the broadcasts of both requests."""
    await house.start(never_clean, suspend_after=60.0, grace=300)
    id = await house.client.start("dur.never_clean", {"seconds": 50})
    await house.until("select 1 from step where kind = 'sleep'")
    await house.rows("select messages from cancel_nested(array[$1::uuid], 'first')", id)
    async with asyncio.timeout(20):
        while not CALLS["cleans"]:
            await asyncio.sleep(0.01)
    await house.rows("select messages from cancel_nested(array[$1::uuid], 'second')", id)
    with pytest.raises(ExecutionFailed) as failed:
        await house.client.result(id, timeout=20)
    assert failed.value.status == "cancelled"
    await house.quiet()
    await house.sound()


@action(pack="dur")
async def cleans_for_long(ctx: DurableContext) -> None:
    try:
        await ctx.sleep("1h")
    finally:
        await ctx.step("clean", note, "child cleans")
        await ctx.step("hangs", asyncio.Event().wait)


@action(pack="dur")
async def around(ctx: DurableContext, cleans: bool) -> None:
    try:
        await ctx.run(cleans_for_long)
    finally:
        if cleans:
            await ctx.step("clean", note, "outer cleans")
            await ctx.step("hangs", asyncio.Event().wait)


@workflow(pack="dur")
def around_both():  # type: ignore[no-untyped-def]
    around(cleans=True)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("ref", "params"),
    [("around", {"cleans": True}), ("around", {"cleans": False}), ("around_both", {})],
    ids=["cleans", "has ended", "in a workflow"],
)
async def test_second_cancel_by_hand_ends_the_cleanup_of_a_child(
    house: Installation, ref: str, params: dict[str, Any]
) -> None:
    await house.start(cleans_for_long, around, around_both, suspend_after=1.0, grace=300)
    id = await house.client.start(f"dur.{ref}", params)
    await house.until("select 1 from step where kind = 'sleep'")
    await house.until("select 1 from suspended having count(*) = 2")
    assert await house.client.cancel(id) == 1
    while not CALLS["child cleans"] or (params != {"cleans": False} and not CALLS["outer cleans"]):
        await asyncio.sleep(0.01)
    assert await house.client.cancel(id) == 1
    await house.until("select 1 where not exists (select from execution where finished_at is null)")
    statuses = await house.rows("select distinct status from execution")
    assert [row["status"] for row in statuses] == ["cancelled"]
    await house.quiet()
    await house.sound()


@pytest.mark.parametrize("seconds", [3600, 0.9])
async def test_function_that_cleans_up_is_ended_by_no_request_but_one_by_hand(
    house: Installation, seconds: float
) -> None:
    await house.start(never_clean, suspend_after=1.0, grace=300)
    id = await house.client.start("dur.never_clean", {"seconds": seconds})
    await house.until("select 1 from step where kind = 'sleep'")
    if seconds > 1:
        await house.until("select 1 from suspended")
    assert await house.client.cancel(id) == 1
    while not CALLS["cleans"]:
        await asyncio.sleep(0.01)
    for request in ("cancel_executions(array[$1::uuid],", "stop_executions(array[$1::uuid], 'timeout',"):
        [ends] = await house.rows(f"select canceling, stopping, moved from {request} 'not by hand')", id)
        assert not any(ends), request
    assert (await house.client.get(id)).status == "running"
    assert await house.client.cancel(id) == 1
    with pytest.raises(ExecutionFailed):
        await house.client.result(id, timeout=20)
    await house.quiet()
    await house.sound()


@action(pack="dur")
async def returns_nevertheless(ctx: DurableContext) -> str:
    ctx.on_failure(note, "undone")
    try:
        await ctx.step("hangs", asyncio.Event().wait)
    except asyncio.CancelledError:
        return "returned"
    return "never cancelled"


async def test_a_cancelled_function_that_returns_completes(house: Installation) -> None:
    await house.start(returns_nevertheless)
    id = await house.client.start("dur.returns_nevertheless")
    await house.until("select 1 from execution where id = $1 and status = 'running'", id)
    assert await house.client.cancel(id) == 1
    assert await house.client.result(id, timeout=20) == "returned"
    assert CALLS == {}
    await house.quiet()
    await house.sound()


async def test_steps_of_a_final_failure_are_undone(house: Installation) -> None:
    await house.start(failing)
    with pytest.raises(ExecutionFailed, match="break: ConnectionError: away"):
        await run(house, "dur.failing")
    assert CALLS == {"book": 1, "fail": 1, "undone": 1}


async def test_a_function_is_told_by_signals(house: Installation) -> None:
    await house.start(told)
    id = await house.client.start("dur.told")
    await house.client.signal(id, "word", "a")
    await house.until("select 1 from step where kind = 'state' and name = 'state/late'")
    await house.until("select 1 from suspended where signals <> '[]'")
    assert (await house.client.signal(id, "words", 7)).awaits == ["word"]
    assert (await house.client.signal(id, "word", {"b": 1})).is_awaited
    assert await house.client.result(id, timeout=20) == ["a", {"b": 1}]
    with pytest.raises(Conflict):
        await house.client.signal(id, "word", 1)
    await house.quiet()
    await house.sound()


async def test_a_step_is_given_its_result(house: Installation) -> None:
    await house.start(asker)
    id = await house.client.start("dur.asker")
    await house.until("select 1 from suspended")
    await house.client.command(id, "set_result", task="ask", value="nobody", by="ada")
    assert await house.client.result(id, timeout=20) == "nobody"
    with pytest.raises(Conflict):
        await house.client.command(id, "set_result", task="ask", value="again", by="ada")
    await house.quiet()
    await house.sound()


@action(pack="dur")
async def again(ctx: DurableContext) -> list[Any]:
    results = [await ctx.step("one", note, "one"), await ctx.run(double, n=2)]
    return [*results, await ctx.step("two", fail, 1), await ctx.step("three", note, "three")]


@pytest.mark.parametrize("archived", [False, True])
async def test_a_rerun_keeps_the_records_before_a_step(house: Installation, archived: bool) -> None:
    await house.start(again, double, archive_after=0.1 if archived else 3600.0)
    id = await house.client.start("dur.again")
    with pytest.raises(ExecutionFailed):
        await house.client.result(id, timeout=20)
    if archived:
        await house.until("select 1 from archive where id = $1", id)
        assert not await house.rows("select 1 from step")
    new = await house.client.rerun(id, from_task="two", by="ada")
    assert await house.client.result(new, timeout=20) == ["ONE", 4, 2, "THREE"]
    assert CALLS == {"one": 1, "double": 1, "fail": 2, "three": 1}
    with pytest.raises(NotFound, match="no step 'four'"):
        await house.client.rerun(id, from_task="four", by="ada")


@action(pack="dur")
async def signalled(ctx: DurableContext) -> list[Any]:
    stamp = ctx.random()
    results = [await ctx.step("one", note, "one"), await ctx.signal("word")]
    return [stamp, *results, await ctx.step("two", note, "two"), await ctx.signal("word")]


async def test_rerun_from_signal_keeps_earlier_steps(house: Installation) -> None:
    await house.start(signalled)
    id = await house.client.start("dur.signalled")
    for word in ("a", "b"):  # the function receives them long after they were sent
        await house.client.signal(id, "word", word)
    first = await house.client.result(id, timeout=20)
    assert first[1:] == ["ONE", "a", "TWO", "b"]
    new = await house.client.rerun(id, from_task="word", by="ada")
    for word in ("c", "d"):
        await house.client.signal(new, "word", word)
    assert await house.client.result(new, timeout=20) == [first[0], "ONE", "c", "TWO", "d"]
    assert CALLS == {"one": 1, "two": 2}
    last = await house.client.rerun(id, from_task="word:2", by="ada")
    await house.client.signal(last, "word", "e")
    assert await house.client.result(last, timeout=20) == [first[0], "ONE", "a", "TWO", "e"]
    assert CALLS == {"one": 1, "two": 2}
    await house.quiet()
    await house.sound()


async def test_a_function_that_does_not_stay_is_woken_for_everything(house: Installation) -> None:
    await house.start(parent, double, suspend_after=0.0)
    results = await asyncio.gather(*(run(house, "dur.parent") for _ in range(4)))
    assert results == [[2, [0, 2, 4, 6, 8], [2 * n for n in range(30)]]] * 4
    await house.quiet()
    await house.sound()


async def test_a_worker_with_one_slot_runs_its_children(house: Installation) -> None:
    await house.start(parent, double, concurrency=1)
    assert (await run(house, "dur.parent"))[0] == 2
    await house.quiet()
    await house.sound()


@action(pack="dur")
async def namesakes(ctx: DurableContext) -> list[Any]:
    single = await ctx.run(double, n=1)
    several = await ctx.map(double, [{"n": 2}])
    word = await ctx.ask("Which?", default="none", timeout=0.05, name="double")
    return [single, several, word]


async def test_one_name_runs_an_action_a_map_and_a_question(house: Installation) -> None:
    await house.start(namesakes, double)
    assert await run(house, "dur.namesakes") == [2, [4], "none"]
    await house.quiet()
    await house.sound()


async def hang_undone() -> None:
    CALLS["undoes"] += 1
    await asyncio.sleep(30)


@action(pack="dur")
async def undone_slowly(ctx: DurableContext) -> None:
    ctx.on_failure(hang_undone)
    await ctx.step("hangs", asyncio.Event().wait)


@action(pack="dur")
async def not_undone(ctx: DurableContext) -> None:
    ctx.on_failure(fail, 99)
    await ctx.step("hangs", asyncio.Event().wait)


@action(pack="dur", timeout=0.5)
async def undone_slowly_late(ctx: DurableContext) -> None:
    ctx.on_failure(hang_undone)
    await ctx.step("hangs", asyncio.Event().wait)


@pytest.mark.parametrize(
    ("function", "status", "message"),
    [
        (undone_slowly, "cancelled", "had not cleaned up after 0.3 s"),
        (not_undone, "cancelled", "and not undone: step on failure fail failed: ConnectionError: away"),
        (undone_slowly_late, "timeout", "had not cleaned up after 0.3 s"),
    ],
)
async def test_undo_that_does_not_succeed_is_told(
    house: Installation, function: Action[..., Any], status: str, message: str
) -> None:
    await house.start(function, grace=0.3, suspend_after=30)
    id = await house.client.start(function.ref)
    await house.until("select 1 from execution where id = $1 and status = 'running'", id)
    await asyncio.sleep(0.2)
    if status == "cancelled":
        await house.client.cancel(id)
    await house.until("select 1 from execution where id = $1 and finished_at is not null", id)
    [row] = await house.rows(
        "select e.status, r.error::text as error from execution e join result r on r.execution_id = e.id where e.id = $1",
        id,
    )
    assert row["status"] == status
    await house.quiet()
    if function is not not_undone:
        await house.until("select 1 from log_line where execution_id = $1", id)
    lines = await house.rows("select line from log_line where execution_id = $1", id)
    assert message in (row["error"] if status == "cancelled" else str([line["line"] for line in lines]))
    await house.sound()
