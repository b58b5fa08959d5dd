"""Calls of functions with batches: each item has its own outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from penstock.errors import OutsideRun
from penstock.run.batch_calls import outcomes_of_items
from penstock.run.batch_item import Item
from penstock.run.calls import call, call_plain
from penstock.run.context import current
from penstock.run.outcomes import Outcome
from penstock.run.run import Run, TaskReadyEvent
from penstock.run.run_log import RunLog
from penstock.run.steering import AskInquiry, Defer, NonRetryable, Retry, ask, sleep
from penstock.testing.scenarios import ScenarioAction


def batch_of(function: Callable[..., Any], inputs: list[Any], **fields: Any) -> Run:
    """A call with an item for each of `inputs`, whose ids count from 1."""
    action = ScenarioAction("test.batch", function, is_coroutine=asyncio.iscoroutinefunction(function))

    def run(number: int, **more: Any) -> Run:
        event = TaskReadyEvent(UUID(int=number), 1, 3, "public::test::batch", "test.batch", UUID(int=number))
        return Run(event, {}, action, RunLog(lambda *_: None), **more)

    return run(1, items=[run(place, input=value, **fields) for place, value in enumerate(inputs, 1)])


def outcomes(function: Callable[..., Any], inputs: list[Any], **fields: Any) -> list[Outcome]:
    run = batch_of(function, inputs, **fields)
    return outcomes_of_items(run, asyncio.run(call(run)) if run.action.is_coroutine else call_plain(run))


async def doubled(items: list[Item[int]]) -> list[int]:
    await asyncio.sleep(0)
    return [2 * item.input for item in items]


def ids(items: list[Item[int]]) -> list[str]:
    return [str(item.execution_id) for item in items]


def test_each_item_gets_the_result_at_its_place() -> None:
    assert [one.result for one in outcomes(doubled, [1, 5, 3])] == [2, 10, 6]
    assert [one.result for one in outcomes(ids, [0, 0])] == [str(UUID(int=1)), str(UUID(int=2))]


def test_exception_in_the_list_fails_its_item_alone() -> None:
    def partly(items: list[Item[int]]) -> list[Any]:
        return [1, ValueError("two"), NonRetryable("three"), Retry(after=7), object()]

    done = outcomes(partly, [0] * 5)
    assert [one.kind for one in done] == ["completed", *["failed"] * 4]
    errors = [one.error for one in done if one.error]
    assert [(error.type, error.retryable, error.retry_after) for error in errors] == [
        ("ValueError", None, None),
        ("NonRetryable", False, None),
        ("Retry", True, 7.0),
        ("ResultNotStorable", False, None),
    ]


def test_returned_error_of_any_class_fails_its_item() -> None:
    done = outcomes(lambda items: [asyncio.CancelledError("of gather"), GeneratorExit()], [0, 0])
    assert [one.error and one.error.type for one in done] == [
        "asyncio.exceptions.CancelledError",
        "GeneratorExit",
    ]


@pytest.mark.parametrize("returned", [[], [1, 2, 3], None, 7, "ab", {1: 2, 3: 4}])
def test_wrong_number_of_results_fails_all_items(returned: Any) -> None:
    done = outcomes(lambda items: returned, [0, 0])
    assert [(one.kind, one.error and one.error.type) for one in done] == [("failed", "BatchMismatch")] * 2
    assert done[0].error
    assert "a batch of 2" in done[0].error.message


def test_raised_exception_fails_all_items() -> None:
    async def failing(items: list[Item[int]]) -> list[int]:
        raise OSError("down")

    assert [one.error and one.error.message for one in outcomes(failing, [0, 0])] == ["down"] * 2


def test_item_that_waits_keeps_its_carried_values() -> None:
    def waiting(items: list[Item[int]]) -> list[Any]:
        return [Defer(delay=5, state={"page": 2}), AskInquiry("ok?", resume=True), items[0].state]

    deferred, asking, other = outcomes(waiting, [0] * 3, carry={"state": 1, "answers": ["yes"]})
    assert (deferred.kind, deferred.carry) == ("deferred", {"state": {"page": 2}, "answers": ["yes"]})
    assert asking.inquiry is not None
    assert asking.inquiry["resume"] == {"state": 1, "answers": ["yes"]}
    assert other.result == 1


def test_batch_has_no_run_of_its_own() -> None:
    def misled(items: list[Item[int]]) -> list[Any]:
        found: list[Any] = []
        for steer in (current, lambda: sleep(1), lambda: asyncio.run(ask("?"))):
            with pytest.raises(OutsideRun) as error:
                steer()
            found.append(error.value.hint)
        return [found]

    [done] = outcomes(misled, [0])
    assert [hint.count("tem") > 0 for hint in done.result] == [True] * 3


def test_cost_counts_for_its_item() -> None:
    def costly(items: list[Item[int]]) -> list[None]:
        for item in items:
            item.cost(tokens=item.input)
        return [None] * len(items)

    done = outcomes(costly, [3, 4])
    assert [one.costs for one in done] == [{"tokens": Decimal(3)}, {"tokens": Decimal(4)}]


def test_cancelled_item_and_cancelled_call_are_seen() -> None:
    run = batch_of(ids, [0, 0])
    assert run.items is not None
    first, second = (Item(0, item, run) for item in run.items)
    run.items[0].cancelled = True
    assert (first.cancelled, second.cancelled) == (True, False)
    run.cancelled = True
    assert second.cancelled
