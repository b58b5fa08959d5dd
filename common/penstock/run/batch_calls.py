"""The call of a function that takes a batch: the items that it gets, and the outcome of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from penstock.errors import BatchMismatch
from penstock.run.batch_item import Item
from penstock.run.outcomes import Outcome
from penstock.run.run import Run


def items_of(run: Run) -> list[Item[Any]]:
    """Return the items of a call, as its function gets them."""
    return [Item(item.input, item, run) for item in run.items or ()]


def batch_outcome(run: Run, returned: object) -> Outcome:
    """Return the outcome of a call that returned: the outcome of each item. An exception instead of a result, and an
    instruction such as Defer, are for that item alone. A wrong number of results fails all items."""
    items = run.items or ()
    if not isinstance(returned, list | tuple) or len(returned) != len(items):
        text = f"{len(returned)} results" if isinstance(returned, list | tuple) else type(returned).__name__
        error = BatchMismatch(
            f"the function was called with a batch of {len(items)} and returned {text}",
            hint="Return a list with one result for each item, in their order, and an exception for an item that failed.",
        )
        return Outcome.failed(error)
    outcomes = [_of_item(item, value) for item, value in zip(items, returned, strict=True)]
    return Outcome("batch", items=outcomes)


def outcomes_of_items(run: Run, outcome: Outcome) -> list[Outcome]:
    """Return the outcome of each item of a call. If the call itself failed, was cancelled or timed out, each item has
    that outcome."""
    items = run.items or ()
    outcomes: Sequence[Outcome] = [outcome] * len(items) if outcome.items is None else outcome.items
    return [_carrying(item, outcome) for item, outcome in zip(items, outcomes, strict=True)]


def _of_item(item: Run, value: object) -> Outcome:
    if isinstance(value, BaseException):  # asyncio.gather returns CancelledError too
        outcome = Outcome.raised(value, limit=item.result_limit)
    else:
        outcome = Outcome.returned(value, item.result_limit)
    return replace(outcome, costs=dict(item.costs)) if item.costs else outcome


def _carrying(item: Run, outcome: Outcome) -> Outcome:
    """Return the outcome with what the item carries from earlier runs. A Defer or an AskInquiry that the function creates does
    not know its item."""
    if not item.carry:
        return outcome
    if outcome.carry is not None:
        return replace(outcome, carry={**item.carry, **outcome.carry})
    if outcome.inquiry is not None and "resume" in outcome.inquiry:
        resume = {**item.carry, **outcome.inquiry["resume"]}
        return replace(outcome, inquiry={**outcome.inquiry, "resume": resume})
    return outcome
