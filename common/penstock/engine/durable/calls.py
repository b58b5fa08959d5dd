"""A call that a durable function awaits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from datetime import datetime
from typing import Any
from uuid import UUID

from penstock.engine.durable.records import Record

Work = Callable[["Call"], Coroutine[Any, Any, None]]
Answer = Callable[[], Any]


class Call:
    """A call that a durable function awaits. `work` does on the worker's loop what the call asks for, and settles the
    call. `answer` returns the result or raises the error, once one is known. `instant` is the time since which it is
    there. `number` is the number of the result in the order of deliveries to the function.

    The function's task awaits `future`. `task` runs `work`. `signal` is the name of an awaited signal, and `order` the
    position of the call among those that wait for it. `calling`: the function of a step runs. `starting`: the child is
    being started; afterwards it is `child`. `decision` is awaited by a deadline that has passed: it gets the number
    with which that is recorded. `serves`: the deadline of this call has found a signal, which the first waiting call
    gets."""

    __slots__ = (
        "answer", "calling", "cancelling", "child", "context", "decision", "future", "instant", "number", "on_told", "order",
        "record", "serves", "signal", "starting", "task", "told", "work",
    )  # fmt: skip

    def __init__(
        self, record: Record | None, work: Work, *, signal: str | None = None, order: int = 0
    ) -> None:
        self.record = record
        self.work = work
        self.signal = signal
        self.order = order
        self.future: asyncio.Future[Any] | None = None
        self.on_told: Callable[[], None] | None = None
        self.context: Context | None = None
        self.task: asyncio.Task[None] | None = None
        self.answer: Answer | None = None
        self.instant: datetime | None = None
        self.decision: asyncio.Future[int] | None = None
        self.number: int | None = None
        self.told = False
        self.cancelling = False
        self.serves = False
        self.calling = False
        self.starting = False
        self.child: UUID | None = None
