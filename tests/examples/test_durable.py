"""The examples of durable functions, crashed wherever they record something."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from penstock.errors import ExecutionFailed
from penstock.language.definitions.importing import imported_file
from penstock.testing import DurableRun, crash_everywhere

FOLDER = Path(__file__).parents[2] / "examples/durable"


def example(name: str) -> Any:
    return imported_file(FOLDER / f"{name}.py")


def counted(monkeypatch: pytest.MonkeyPatch, module: ModuleType, *names: str) -> Counter[tuple[Any, ...]]:
    """Counts the calls of these functions of a module, with what they are given."""
    calls: Counter[tuple[Any, ...]] = Counter()

    def count(name: str, real: Any) -> Any:
        def called(*given: Any) -> Any:
            calls[name, *given] += 1
            return real(*given)

        called.__name__ = name
        return called

    for name in names:
        real = getattr(getattr(module, name), "real", getattr(module, name))
        function = count(name, real)
        function.real = real
        monkeypatch.setattr(module, name, function)
    return calls


def once_each(calls: Counter[tuple[Any, ...]], run: DurableRun) -> None:
    """A crash right before a record repeats that one call, and no other."""
    repeated = {call: times for call, times in calls.items() if times > 1}
    assert len(repeated) <= (1 if run.crashed.startswith("before") else 0), repeated
    assert all(times == 2 for times in repeated.values())


@crash_everywhere
async def test_an_order_is_paid_and_shipped(run: DurableRun, monkeypatch: pytest.MonkeyPatch) -> None:
    order = example("order")
    calls = counted(monkeypatch, order, "reserve", "charge", "ship", "release", "refund")
    assert await run(order.place_order, order=7, amount=12.5) == "parcel-7"
    assert {call[0] for call in calls} == {"reserve", "charge", "ship"}
    once_each(calls, run)


@crash_everywhere
async def test_an_order_that_cannot_be_shipped_is_undone(
    run: DurableRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = example("order")

    def broken(order: int) -> str:
        raise OSError("no truck")

    monkeypatch.setattr(order, "ship", broken)
    calls = counted(monkeypatch, order, "release", "refund")
    with pytest.raises(ExecutionFailed, match="no truck"):
        await run(order.place_order, order=7, amount=12.5)
    assert list(calls) == [("refund", "payment-7"), ("release", "reservation-7")]
    once_each(calls, run)
    assert run.now.minute >= 1, "five tries have pauses between them"


@crash_everywhere
async def test_a_subscription_lasts_for_months(run: DurableRun, monkeypatch: pytest.MonkeyPatch) -> None:
    subscription = example("subscription")
    calls = counted(monkeypatch, subscription, "charge", "say_goodbye")
    run.signal("cancel", after="100d")
    assert await run(subscription.subscription, customer="ada") == 4
    assert set(calls) == {("charge", "ada", month) for month in (1, 2, 3, 4)} | {("say_goodbye", "ada", 4)}
    assert run.state("paid") == 4
    once_each(calls, run)


@crash_everywhere
async def test_an_approval_is_reminded_of(run: DurableRun, monkeypatch: pytest.MonkeyPatch) -> None:
    approval = example("approval")
    calls = counted(monkeypatch, approval, "remind", "buy")
    run.answer(True, after="50h")
    assert await run(approval.approval, purchase="a desk", manager="ada") == "bought a desk"
    assert set(calls) == {("remind", "ada", "a desk", day) for day in (1, 2)} | {("buy", "a desk")}
    once_each(calls, run)


@crash_everywhere
async def test_an_approval_ends_after_a_week(run: DurableRun) -> None:
    assert await run(example("approval").approval, purchase="a desk", manager="ada") == "nobody answered"
    assert run.recorded.count("2/remind") == 1
    assert run.now.day == 8


@crash_everywhere
async def test_a_batch_runs_its_items_once(run: DurableRun) -> None:
    assert await run(example("batch").shrink_all, count=20) == {"images": 20, "bytes": 20 * 7 + 10}


@crash_everywhere
async def test_polling_waits_longer_and_longer(run: DurableRun, monkeypatch: pytest.MonkeyPatch) -> None:
    polling = example("polling")
    states = iter(["running"] * 12 + ["done"] * 5)
    monkeypatch.setattr(polling, "look", lambda job: next(states))
    calls = counted(monkeypatch, polling, "submit")
    assert await run(polling.render, scene="sea") == "job-sea"
    assert sum(calls.values()) <= 2
