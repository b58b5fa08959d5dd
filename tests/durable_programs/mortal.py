"""The module of workers that play programs, and kill themselves before and after commits."""

from __future__ import annotations

import base64
import os
import pickle
import random
import signal
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from penstock import DurableContext, NonRetryable, action, current
from penstock.engine.durable import step_runs, step_tries
from penstock.store.session import crash_points
from tests.durable_programs.interpreter import Interpreter
from tests.durable_programs.statements import DAY, Program, Step
from tests.durable_programs.world import World, value_of

DAY_TAKES = 0.25
"""Seconds."""
DEATHS = "DURABLE_DEATHS"
"""An environment variable: how likely a worker dies at a commit. Without it none does, and this is an ordinary module."""
CALLS = "DURABLE_CALLS"
"""An environment variable: the file with a line for each call."""
TRIES: ContextVar[int] = ContextVar("tries")


def in_seconds(span: float | None) -> float | None:
    """Return what this span of a program takes."""
    return None if span is None else span / DAY * DAY_TAKES


def to_text(program: Program) -> str:
    return base64.b64encode(pickle.dumps(program)).decode()


async def _try_once(record: Any, call: Callable[[], Any], limit: int) -> Any:
    """A step knows how many of its calls are recorded."""
    TRIES.set(record.tries)
    return await step_tries.try_once(record, call, limit)


class MortalWorld(World):
    """A world that is told of by a file, and in which a call may be lost."""

    def note(self, *words: str) -> None:
        line = " ".join((str(current().execution_id), str(os.getpid()), *words))
        with Path(os.environ[CALLS]).open("a") as file:
            file.write(f"{line}\n")

    async def step(self, place: str, step: Step, extra: str) -> str:
        self.note("call", place)
        for wrong in self.wrong:
            self.note("wrong", wrong)
        if step.fails < 0 or TRIES.get() < step.fails:
            raise (OSError if step.retryable else NonRetryable)(f"<{place}>")
        return value_of(place, step, extra)

    async def undo(self, place: str, hangs: bool = False) -> str:
        self.note("undo", place)
        return f"<undo {place}>"


class QuickContext:
    """A context whose days take a moment."""

    def __init__(self, context: DurableContext) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def sleep(self, seconds: float) -> Awaitable[None]:
        return self._context.sleep(seconds / DAY * DAY_TAKES)

    def signal(self, name: str, timeout: float | None = None) -> Awaitable[Any]:
        return self._context.signal(name, timeout=in_seconds(timeout))

    def timeout(self, seconds: float) -> Any:
        return self._context.timeout(seconds / DAY * DAY_TAKES)

    def step(self, name: str, function: Callable[..., Any], *args: Any, retry: dict[str, Any]) -> Any:
        quick = {key: seconds / DAY * DAY_TAKES for key, seconds in retry.items() if key == "initial_delay"}
        return self._context.step(name, function, *args, retry={**retry, **quick})


@action(pack="p", max_recoveries=1000)
async def program(ctx: DurableContext, text: str) -> Any:
    played: Program = pickle.loads(base64.b64decode(text))
    world = MortalWorld()
    result = await Interpreter(QuickContext(ctx), world).play(played.body, "0", {})
    for wrong in world.wrong:
        world.note("wrong", wrong)
    return result


@action(pack="p", max_recoveries=1000)
async def child(place: str, fails: bool = False) -> str:
    if fails:
        raise OSError(f"<{place}>")
    return f"<{place}>"


def _mortal(likely: float) -> None:
    draw = random.Random(os.getpid())

    def reached(what: str, connection: object) -> None:
        if what in ("committing", "committed") and draw.random() < likely:
            os.kill(os.getpid(), signal.SIGKILL)

    crash_points.reached = reached


if likely := float(os.environ.get(DEATHS, 0)):
    step_runs.try_once = _try_once  # type: ignore[attr-defined]
    _mortal(likely)
