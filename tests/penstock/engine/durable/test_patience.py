"""The time for which an attempt stays while its function waits, the ends of waits, and the waits of a suspended run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from penstock.engine.durable import waiting
from penstock.engine.durable.attempt_over import AttemptOver, Stopped, Suspended, Unfinished
from penstock.engine.durable.records import Awaited, Child, Key
from penstock.engine.durable.waiting import LOOK, Waiting, _Wait
from penstock.errors import ClaimLost, NothingAwaited
from penstock.language.terms.ids import new_id
from penstock.testing.durable_run import BEGIN

SIGNALS = (Key("signal/go", 1),)


@dataclass
class Outside:
    """The attempt as its waits need it: the backend, the clock and the deliveries in one."""

    free: bool = True
    is_idle: bool = True
    has_cancels: bool = False
    has_values: bool = False
    awaited_signals: tuple[Key, ...] = ()
    ends: dict[UUID, Child] = field(default_factory=dict)
    now: datetime = BEGIN
    happened: list[str] = field(default_factory=list)
    error: Exception | None = None

    @property
    def backend(self) -> Any:
        return self

    @property
    def deliveries(self) -> Any:
        return self

    @property
    def signals(self) -> Any:
        return self

    @property
    def idle(self) -> bool:
        return self.is_idle

    def clock(self) -> datetime:
        return self.now

    def awaited(self) -> tuple[Key, ...]:
        return self.awaited_signals

    def may_stay(self) -> bool:
        return self.free

    def wake(self) -> None:
        self.happened.append("wake")

    def end_attempt(self) -> None:
        self.wake()

    def expect_children(self, ends: Any) -> None:
        """Expect nothing: the wait itself is told of the end."""

    async def carry_out_cancels(self) -> None:
        self.has_cancels = False
        self.happened.append("cancel")

    async def write_values(self) -> None:
        self.has_values = False
        self.happened.append("write")

    async def look(self) -> None:
        self.happened.append("look")

    async def ended(self, ids: Sequence[UUID], seconds: float) -> Mapping[UUID, Child]:
        if self.error is not None:
            raise self.error
        await asyncio.sleep(0)
        return {id: child for id, child in self.ends.items() if id in ids}


CHILD, OTHER = new_id(), new_id()
SOON, LATER = BEGIN + timedelta(seconds=2), BEGIN + timedelta(days=1)


def _waiting(outside: Outside, warm: float) -> Waiting:
    return Waiting(outside, warm)  # type: ignore[arg-type]  # a stand-in


def _wait(**parts: Any) -> _Wait:
    return _Wait(asyncio.get_running_loop().create_future(), None, **parts)


@dataclass
class Case:
    """`remains`: seconds that the attempt stays on, of five; None: it is suspended."""

    waits: list[dict[str, Any]]
    remains: float | None
    idle_since: float | None = 0.0
    free: bool = True
    staying: bool = False


PATIENCE: dict[str, Case] = {
    "child": Case([{"child": CHILD}], LOOK),
    "question to a human": Case([{"child": CHILD, "slow": True}], None),
    "short sleep": Case([{"until": SOON}], LOOK),
    "long sleep": Case([{"until": LATER}], None),
    "long sleep beside a child": Case([{"until": LATER}, {"child": CHILD}], LOOK),
    "sleep of just the time": Case([{"until": BEGIN + timedelta(seconds=5)}], LOOK),
    "signal": Case([{"slow": True}], None),
    "signal with a short deadline": Case([{"slow": True, "until": SOON}], None),
    "nothing": Case([], None),
    "child, and the slot is needed": Case([{"child": CHILD}], None, free=False),
    "long sleep while the function cleans up": Case([{"until": LATER}], LOOK, staying=True),
    "question while tasks run": Case([{"child": CHILD, "slow": True}], LOOK, idle_since=None),
    "child, nearly given up": Case([{"child": CHILD}], 0.02, idle_since=-4.98),
    "child, given up": Case([{"child": CHILD}], None, idle_since=-6.0),
}


@pytest.mark.parametrize("name", PATIENCE)
async def test_attempt_stays_where_an_end_may_come_soon(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = PATIENCE[name]
    outside = Outside(free=case.free)
    waits = _waiting(outside, warm=5.0)
    waits.staying = case.staying
    waits._waits = {_wait(**parts) for parts in case.waits}
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "time", lambda: 1000.0)
    idle_since = None if case.idle_since is None else 1000.0 + case.idle_since
    remains = waits._patience(outside, idle_since)  # type: ignore[arg-type]
    monkeypatch.undo()
    assert max(remains, 0.0) == pytest.approx(case.remains or 0.0)


async def _verdict(waits: Waiting, *work: Coroutine[Any, Any, Any]) -> Any:
    """Let these wait, each as work that is under way, until there is a verdict. Returns it."""
    tasks = [asyncio.ensure_future(waits.busy(part)) for part in work]
    async with asyncio.timeout(20):
        while waits.verdict is None:
            await asyncio.sleep(0.005)
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    waits.close()
    assert all(isinstance(end, AttemptOver) for end in ends), ends
    return waits.verdict


SUSPENDED: dict[str, tuple[Callable[[Waiting], list[Coroutine[Any, Any, Any]]], Awaited]] = {
    "child": (lambda w: [w.for_child(CHILD, "the end of a step", slow=True)], Awaited(children=(CHILD,))),
    "sleeps": (
        lambda w: [w.until(LATER, "a timer"), w.until(LATER + timedelta(1), "a timer")],
        Awaited(until=LATER),
    ),
    "signal with a deadline": (lambda w: [w.for_signal(LATER)], Awaited(until=LATER, signals=SIGNALS)),
    "signal": (lambda w: [w.for_signal()], Awaited(signals=SIGNALS)),
    "child beside a sleep": (
        lambda w: [w.for_child(CHILD, "the end of a step", slow=True), w.until(LATER, "a timer")],
        Awaited(children=(CHILD,), until=LATER),
    ),
}


@pytest.mark.parametrize("name", SUSPENDED)
async def test_suspended_run_names_awaited_things(name: str) -> None:
    work, awaited = SUSPENDED[name]
    outside = Outside(awaited_signals=awaited.signals)
    waits = _waiting(outside, warm=0.0)
    assert await _verdict(waits, *work(waits)) == Suspended(awaited)
    assert "wake" in outside.happened


UNHURRIED: dict[str, Callable[[Waiting], Coroutine[Any, Any, Any]]] = {
    "signal": lambda waits: waits.for_signal(),
    "signal with a short deadline": lambda waits: waits.for_signal(SOON),
    "question to a human": lambda waits: waits.for_child(CHILD, "the end of a step", slow=True),
}


@pytest.mark.parametrize("name", UNHURRIED)
async def test_wait_for_others_is_no_reason_to_stay(name: str) -> None:
    waits = _waiting(Outside(awaited_signals=SIGNALS), warm=1_000_000.0)
    assert isinstance(await _verdict(waits, UNHURRIED[name](waits)), Suspended)


async def test_cancels_and_values_are_written_before_suspension() -> None:
    outside = Outside(has_cancels=True, has_values=True)
    waits = _waiting(outside, warm=0.0)
    await _verdict(waits, waits.until(LATER, "a timer"))
    assert outside.happened == ["cancel", "write", "wake"]


async def test_attempt_stays_while_work_is_under_way() -> None:
    outside = Outside()
    waits = _waiting(outside, warm=0.0)
    sleeping = asyncio.ensure_future(waits.busy(waits.until(LATER, "a timer")))
    waits.begin_work()
    await asyncio.sleep(3 * LOOK)
    assert waits.verdict is None
    outside.is_idle = False
    waits.end_work()
    await asyncio.sleep(3 * LOOK)
    assert waits.verdict is None
    outside.is_idle = True
    waits.changed()
    assert await _verdict(waits) == Suspended(Awaited(until=LATER))
    with pytest.raises(AttemptOver):
        await sleeping


async def test_wait_that_is_over_at_once_waits_for_nothing() -> None:
    waits = _waiting(Outside(), warm=0.0)
    async with asyncio.timeout(5):
        await waits.busy(waits.until(BEGIN, "a timer"))
        await waits.busy(waits.for_signal(BEGIN))
    assert waits._watcher is None


async def test_instant_that_comes_ends_its_wait_alone() -> None:
    outside = Outside()
    waits = _waiting(outside, warm=5.0)
    first = asyncio.ensure_future(waits.busy(waits.until(SOON, "a timer")))
    second = asyncio.ensure_future(waits.busy(waits.until(SOON + timedelta(seconds=1), "a timer")))
    await asyncio.sleep(0)
    outside.now = SOON
    async with asyncio.timeout(5):
        await first
    assert not second.done()
    assert waits.verdict is None
    waits.end(Unfinished())
    with pytest.raises(AttemptOver):
        await second
    waits.close()


async def test_child_that_ends_gives_its_end() -> None:
    outside = Outside()
    waits = _waiting(outside, warm=5.0)
    work = [
        waits.for_child(CHILD, "the end of a step", slow=False),
        waits.for_child(OTHER, "the end of a step", slow=False),
    ]
    first, second = [asyncio.ensure_future(waits.busy(part)) for part in work]
    await asyncio.sleep(0)
    outside.ends[CHILD] = Child(CHILD, "completed", True, "7")
    async with asyncio.timeout(5):
        assert (await first).result == "7"
    assert not second.done()
    waits.end(Unfinished())
    await asyncio.wait([second])
    waits.close()


async def test_cancelled_wait_is_forgotten() -> None:
    waits = _waiting(Outside(), warm=5.0)
    task = asyncio.ensure_future(waits.busy(waits.for_child(CHILD, "the end of a step", slow=False)))
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])
    assert (waits._waits, waits._active) == (set(), 0)
    waits.close()


async def test_signals_are_looked_for_while_attempt_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "SIGNAL_LOOK", 0.01)
    outside = Outside(awaited_signals=SIGNALS)
    waits = _waiting(outside, warm=5.0)
    tasks = [asyncio.ensure_future(waits.busy(waits.for_child(CHILD, "the end of a step", slow=False)))]
    async with asyncio.timeout(20):
        while outside.happened.count("look") < 3:
            await asyncio.sleep(0.01)
    outside.awaited_signals, outside.happened = (), []
    await asyncio.sleep(0.1)
    assert outside.happened.count("look") <= 1
    waits.end(Unfinished())
    await asyncio.wait(tasks)
    waits.close()


async def test_first_verdict_stays() -> None:
    outside = Outside()
    waits = _waiting(outside, warm=0.0)
    waits.check()
    waits.end(Unfinished())
    waits.end(Suspended(Awaited(until=SOON)))
    assert waits.verdict == Unfinished()
    assert outside.happened == ["wake", "wake"]
    for call in (
        waits.until(LATER, "a timer"),
        waits.for_signal(),
        waits.for_child(CHILD, "the end of a step", slow=False),
    ):
        with pytest.raises(AttemptOver):
            await call
    waits.close()
    waits.end(Unfinished())


async def test_error_of_a_look_stops_the_attempt() -> None:
    lost = ClaimLost("another worker has it")
    waits = _waiting(Outside(error=lost), warm=5.0)
    assert await _verdict(waits, waits.for_child(CHILD, "the end of a step", slow=False)) == Stopped(lost)


async def test_suspension_for_nothing_is_an_error() -> None:
    waits = _waiting(Outside(), warm=0.0)
    waits.suspend(Awaited())
    assert isinstance(waits.verdict, Stopped)
    assert isinstance(waits.verdict.error, NothingAwaited)
