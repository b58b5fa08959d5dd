"""A call of a durable function that it awaits."""

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
    """`work` does on the worker's loop what the call asks for, and settles it; `answer` gives its result, or raises its error,
    once that is known, since `instant`. `number` is that of its result among all that the run is told.

    `future` is what the task of the function waits for, `task` the one that works. `signal` is the name of the signal that is
    waited for, `order` the place in its line. `calling`: the function of a step runs; `starting`: the child is being started,
    which is `child` then. `decision` waits for the number with which a deadline that has passed is recorded. `serves`: the
    deadline of this call found a signal of its name, which the first call in line gets."""

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
