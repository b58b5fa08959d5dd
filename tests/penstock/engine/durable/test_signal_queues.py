"""Signals and the calls that wait for them: the nth signal of a name goes to the nth call that gets one."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from penstock import DurableContext, action
from penstock.engine.durable.calls import Call
from penstock.engine.durable.journal import signal_key
from penstock.engine.durable.records import COMPLETED, SIGNAL, Record
from penstock.engine.durable.signal_queues import SignalLines
from penstock.errors import StepTimedOut
from penstock.testing import DurableRun, crash_everywhere
from penstock.testing.durable_run import BEGIN


async def _work(call: Call) -> None:
    """Do nothing: these calls are never started."""


def _waiting(lines: SignalLines, name: str = "go") -> Call:
    call = Call(None, _work, signal=name, order=lines.number())
    lines.join(name, call)
    return call


def _sent(ordinal: int, name: str = "go", *, told: int | None = None, after: int = 0) -> Record:
    at = BEGIN + timedelta(seconds=after)
    return Record(signal_key(name, ordinal), 0, SIGNAL, COMPLETED, f"{ordinal}", told=told, at=at)


@crash_everywhere
async def test_signals_sent_during_step_go_to_calls_in_order(run: DurableRun) -> None:
    """The deadline of the second call finds the second signal before the run knows the first one."""

    async def work() -> None:
        run._memory.now += timedelta(days=1)

    @action(pack="t")
    async def listens(ctx: DurableContext) -> list[Any]:
        patient = asyncio.create_task(ctx.signal("go", timeout="30d"))
        await ctx.step("work", work)
        hasty = await ctx.signal("go", timeout=0)
        return [await patient, hasty]

    run.signal("go", "first", after="1h")
    run.signal("go", "second", after="2h")
    assert await run(listens) == ["first", "second"]


@crash_everywhere
async def test_deadlines_at_once_leave_signal_for_patient_call(run: DurableRun) -> None:
    @action(pack="t")
    async def listens(ctx: DurableContext) -> list[Any]:
        async def hasty() -> str:
            try:
                return str(await ctx.signal("go", timeout=60))
            except StepTimedOut:
                return "late"

        return list(await asyncio.gather(hasty(), ctx.signal("go"), hasty()))

    run.signal("go", "heard", after="1h")
    assert await run(listens) == ["late", "heard", "late"]


@crash_everywhere
async def test_signals_go_to_calls_in_order_of_making(run: DurableRun) -> None:
    """The order in which calls are awaited decides nothing."""

    @action(pack="t")
    async def listens(ctx: DurableContext) -> list[Any]:
        first, second, third = (ctx.signal("go") for _ in range(3))
        return list(await asyncio.gather(third, first, second))

    for number in (1, 2, 3):
        run.signal("go", number, after=f"{number}d")
    assert await run(listens) == [3, 1, 2]


def test_late_call_takes_no_key() -> None:
    lines = SignalLines({})
    first, second, third = (_waiting(lines) for _ in range(3))
    assert [lines.key_for("go", call).ordinal for call in (first, second, third)] == [1, 2, 3]
    first.number = 7
    assert [lines.key_for("go", call).ordinal for call in (first, second, third)] == [1, 1, 2]
    first.serves = True  # its deadline found a signal
    assert [lines.key_for("go", call).ordinal for call in (first, second, third)] == [1, 2, 3]
    other = _waiting(lines, "stop")
    assert lines.key_for("stop", other) == signal_key("stop", 1)


def test_line_is_in_order_of_calls() -> None:
    lines = SignalLines({})
    calls = [Call(None, _work, signal="go", order=order) for order in (3, 1, 2)]
    for call in calls:
        lines.join("go", call)
    lines.arrive([_sent(1), _sent(2), _sent(3)])
    taken = [lines.take("go") for _ in range(3)]
    assert [call.order for call, _ in taken] == [1, 2, 3]
    assert [row.result for _, row in taken] == ["1", "2", "3"]
    assert lines.awaited() == ()


def test_awaited_keys_follow_taken_signals() -> None:
    lines = SignalLines({})
    _waiting(lines), _waiting(lines), _waiting(lines, "stop")
    assert lines.awaited() == (signal_key("go", 1), signal_key("go", 2), signal_key("stop", 1))
    lines.arrive([_sent(1)])
    lines.take("go")
    assert lines.awaited() == (signal_key("go", 2), signal_key("stop", 1))
    lines.forget()
    assert lines.awaited() == ()


def test_arrived_signal_is_news_once() -> None:
    lines = SignalLines({key: record for record in [_sent(1)] for key in [record.key]})
    assert not lines.arrive([])
    assert not lines.arrive([_sent(1)])
    assert lines.arrive([_sent(1), _sent(2)])
    assert not lines.arrive([_sent(2)])


def test_recorded_signals_come_by_number_and_new_ones_by_instant() -> None:
    recorded = {
        r.key: r for r in [_sent(1, "go", told=5), _sent(1, "stop", told=3), _sent(1, "unheard", told=1)]
    }
    lines = SignalLines(
        {**recorded, signal_key("x", 1): Record(signal_key("x", 1), 1, "step", COMPLETED, told=2)}
    )
    assert lines.recorded() is None, "no call waits"
    _waiting(lines), _waiting(lines), _waiting(lines, "stop"), _waiting(lines, "stop"), _waiting(lines, "x")
    assert lines.recorded() == (3, "stop")
    assert lines.earliest() is None
    lines.take("stop")
    assert lines.recorded() == (5, "go")
    lines.arrive([_sent(2, "go", after=9), _sent(2, "stop", after=4)])
    assert lines.earliest() == (BEGIN + timedelta(seconds=4), "stop")
    lines.take("go")
    assert lines.recorded() is None
    lines.take("stop")
    assert lines.earliest() == (BEGIN + timedelta(seconds=9), "go")


def test_call_that_left_is_not_served() -> None:
    lines = SignalLines({})
    first, second = _waiting(lines), _waiting(lines)
    lines.leave("go", first)
    lines.leave("go", first)
    lines.arrive([_sent(1)])
    assert lines.take("go")[0] is second
    lines.leave("go", second)
    assert lines.next("go") is None
    assert lines.recorded() is None


def test_calls_of_one_name_share_a_lock() -> None:
    lines = SignalLines({})
    assert lines.decided("go") is lines.decided("go")
    assert lines.decided("go") is not lines.decided("stop")
