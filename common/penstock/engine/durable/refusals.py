"""The refusal of what a durable function may not use outside of its steps: clocks, the outside, waits without an order."""

from __future__ import annotations

import sys
from asyncio import tasks as asyncio_tasks
from typing import NoReturn

from penstock.errors import DefinitionError

ASYNCIO_TASKS = asyncio_tasks.__file__
UNORDERED_WAITS = {
    "_wait": "asyncio.wait",
    "as_completed": "asyncio.as_completed",
    "_AsCompletedIterator": "asyncio.as_completed",
}
"""The functions and classes of asyncio that wait for the first of several, and their public names: their sets have no order."""


def refuse(function: str, instead: str) -> NoReturn:
    """Raise DefinitionError for a function that a durable function may not call, with what to use instead."""
    raise DefinitionError(
        f"{function} cannot be used in a durable function outside of its steps: in the next attempt it "
        "would return another value",
        hint=f"Use {instead}.",
    )


def refuse_unordered_waits() -> None:
    """Raise DefinitionError if asyncio.wait or asyncio.as_completed is being called.

    The whole stack is searched: a tracer or a wrapper may stand between asyncio and the caller."""
    frame = sys._getframe().f_back
    while frame is not None:
        code = frame.f_code
        if code.co_filename == ASYNCIO_TASKS:
            public_name = UNORDERED_WAITS.get(code.co_qualname.partition(".")[0])
            if public_name is not None:
                refuse(public_name, "ctx.first(a=..., b=...), or asyncio.gather")
        frame = frame.f_back
