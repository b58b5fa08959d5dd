"""The interpreter of programs: it plays statements against a context, and looks at what it gets back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from penstock import NonRetryable
from penstock.errors import StepFailed, StepTimedOut
from tests.durable_programs import statements as s
from tests.durable_programs.statements import DAY, span, wait_name
from tests.durable_programs.world import World, parameters_of, value_of

CHILD = "p.child"
Tasks = dict[int, "asyncio.Task[Any]"]


class Mine(Exception):
    """An error of the function's own."""


class Interpreter:
    """One attempt to play a program."""

    def __init__(self, context: Any, world: World) -> None:
        self.context = context
        self.world = world

    async def play(self, statement: s.Statement, place: str, tasks: Tasks) -> Any:
        """Play a statement. Returns what JSON keeps."""
        play: Callable[[Any, str, Tasks], Coroutine[Any, Any, Any]]
        play = getattr(self, f"_{type(statement).__name__.lower()}")
        return await play(statement, place, tasks)

    async def _step(self, step: s.Step, place: str, _: Tasks, extra: str = "") -> str:
        return self._right(place, step, extra, await self._call(step, place, extra))

    def _call(self, step: s.Step, place: str, extra: str = "") -> Any:
        delay = span(place, step.delay)
        retry = {
            "max_attempts": step.tries,
            "initial_delay": delay,
            "max_delay": max(delay, 1),
            "backoff": "fixed",
            "jitter": 0,
        }
        return self.context.step(step.name, self.world.step, place, step, extra, retry=retry)

    def _right(self, place: str, step: s.Step, extra: str, value: Any) -> str:
        """A step gives what its function returns for the arguments that stand here, whatever happened meanwhile."""
        if value != value_of(place, step, extra):
            self.world.wrong.append(f"step {value_of(place, step, extra)} gave {value}")
        return f"{step.name}<{place}>"

    async def _sleep(self, sleep: s.Sleep, place: str, _: Tasks) -> str:
        await self.context.sleep(span(place, sleep.days))
        return "slept"

    async def _signal(self, signal: s.Signal, place: str, _: Tasks) -> Any:
        for listen in range(signal.listens):
            timeout = None if signal.timeout is None else span(f"{place}@{listen}", signal.timeout)
            try:
                return await self.context.signal(signal.name, timeout=timeout)
            except StepTimedOut:
                continue
        return "not told"

    async def _wait(self, wait: s.Wait, place: str, _: Tasks) -> Any:
        timeout = None if wait.timeout is None else span(f"{place}@", wait.timeout)
        name = wait_name(place)
        try:
            if wait.ask:
                return await self.context.ask("Now?", timeout=timeout, name=name)
            return (await self.context.wait_for("p.event", timeout=timeout, name=name))["payload"]
        except StepTimedOut:
            return "nothing came"

    async def _child(self, child: s.Child, place: str, _: Tasks) -> Any:
        if child.items is None:
            return await self.context.run(CHILD, parameters_of(place, child))
        items = [{"place": f"{place}#{item}"} for item in range(child.items)]
        return await self.context.map(CHILD, items, concurrency=child.concurrency)

    async def _value(self, value: s.Value, place: str, _: Tasks) -> Any:
        """Values that only chance knows go through a step: they have to be the same in each attempt."""
        match value.kind:
            case "now":
                self.world.times[place] = self.context.now()
                return "now"
            case "set":
                self.context.set(place, place)
                return place
            case "version":
                return self.context.version(f"version {place}")
            case "random":
                return await self._step(s.Step("value"), place, {}, str(self.context.random()))
            case _:
                return await self._step(s.Step("value"), place, {}, str(self.context.uuid()))

    async def _undo(self, undo: s.Undo, place: str, tasks: Tasks) -> None:
        self.context.on_failure(self.world.undo, place, *((True,) if undo.hangs else ()))

    async def _raise(self, error: s.Raise, place: str, _: Tasks) -> None:
        raise (Mine if error.retryable else NonRetryable)(f"<{place}>")

    async def _block(self, block: s.Block, place: str, tasks: Tasks) -> list[Any]:
        return [await self.play(part, at, tasks) for at, part in block.parts(place)]

    async def _branches(self, branches: s.Branches, place: str, tasks: Tasks) -> Any:
        parts = list(branches.parts(place))
        match branches.kind:
            case "bare":
                steps = [(at, part) for at, part in parts if isinstance(part, s.Step)]
                values = await asyncio.gather(*(self._call(part, at) for at, part in steps))
                return [
                    self._right(at, part, "", value) for (at, part), value in zip(steps, values, strict=True)
                ]
            case "group":
                async with asyncio.TaskGroup() as group:
                    made = [group.create_task(self.play(part, at, dict(tasks))) for at, part in parts]
                return [task.result() for task in made]
            case "lock" | "semaphore" as kind:
                held = asyncio.Lock() if kind == "lock" else asyncio.Semaphore(2)

                async def holding(part: s.Statement, at: str) -> Any:
                    async with held:
                        return await self.play(part, at, dict(tasks))

                return await asyncio.gather(*(holding(part, at) for at, part in parts))
            case "latch":
                latch = asyncio.Event()

                async def latched(part: s.Statement, at: str, first: bool) -> Any:
                    if not first:
                        await latch.wait()
                    try:
                        return await self.play(part, at, dict(tasks))
                    finally:
                        latch.set()

                return await asyncio.gather(
                    *(latched(part, at, number == 0) for number, (at, part) in enumerate(parts))
                )
            case kind:
                values = await asyncio.gather(
                    *(self.play(part, at, dict(tasks)) for at, part in parts),
                    return_exceptions=kind == "collect",
                )
                return [said(value) if isinstance(value, BaseException) else value for value in values]

    async def _workers(self, workers: s.Workers, place: str, tasks: Tasks) -> dict[str, Any]:
        """Share the items among branches. The branch of an item depends on a race. So it is an argument of a step, and not in the
        result."""
        queue: asyncio.Queue[tuple[str, s.Statement]] = asyncio.Queue()
        values: dict[str, Any] = {}

        async def work(number: int) -> None:
            while not queue.empty():
                at, body = queue.get_nowait()
                await self._step(s.Step("take"), f"{at}t", {}, f" by {number}")
                values[at] = await self.play(body, at, dict(tasks))
                queue.task_done()

        for part in workers.parts(place):
            queue.put_nowait(part)
        await asyncio.gather(*(work(number) for number in range(workers.workers)))
        return dict(sorted(values.items()))

    async def _start(self, start: s.Start, place: str, tasks: Tasks) -> str:
        tasks[start.task] = asyncio.create_task(self.play(start.body, f"{place}~", dict(tasks)))
        return "started"

    async def _await(self, waits: s.Await, place: str, tasks: Tasks) -> Any:
        task = tasks.get(waits.task)
        if task is None:
            return "no task"
        if waits.cancel:
            task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if not task.cancelled() or (me is not None and me.cancelling()):
                raise
            return "cancelled"

    async def _try(self, tried: s.Try, place: str, tasks: Tasks) -> Any:
        (at, body), (handler_at, handler) = tried.parts(place)
        match tried.kind:
            case "finally":
                try:
                    return await self.play(body, at, tasks)
                finally:
                    await self.play(handler, handler_at, tasks)
            case "obey" | "stay" | "refuse" as kind:
                try:
                    return await self.play(body, at, tasks)
                except asyncio.CancelledError as error:
                    self.world.note_cancellation(place, error)
                    value = await self.play(handler, handler_at, tasks)
                    if kind == "obey":
                        raise
                    if kind == "refuse":
                        raise Mine(f"<{place}>") from error
                    return ["stays", value]
            case "star":
                caught: list[Any] = []
                value = None
                try:
                    value = await self.play(body, at, tasks)
                except* (StepFailed, Mine, NonRetryable) as group:
                    caught = sorted(str(said(error)) for error in leaves(group))
                    await self.play(handler, handler_at, tasks)
                return [value, caught]
            case kind:
                try:
                    return await self.play(body, at, tasks)
                except Exception as error:
                    value = await self.play(handler, handler_at, tasks)
                    if kind == "again":
                        raise
                    if kind == "wrap":
                        raise Mine(f"<{place}>") from error
                    if kind == "context":
                        raise Mine(f"<{place}>")  # noqa: B904
                    if kind == "hide":
                        raise Mine(f"<{place}>") from None
                    return ["caught", said(error), value]

    async def _first(self, first: s.First, place: str, tasks: Tasks) -> Any:
        async def arm(days: int, part: s.Statement, at: str) -> Any:
            await self.context.sleep(span(at, days))
            return await self.play(part, at, dict(tasks))

        arms = zip(first.branches, first.parts(place), strict=True)
        winner = await self.context.first(
            **{f"arm{at[-1]}": arm(days, part, at) for (days, _), (at, part) in arms}
        )
        return [winner.name, winner.value]

    async def _timeout(self, timeout: s.Timeout, place: str, tasks: Tasks) -> Any:
        [(at, body)] = timeout.parts(place)
        try:
            async with self.context.timeout(span(place, timeout.days)):
                return await self.play(body, at, tasks)
        except StepTimedOut:
            return "timed out"


def leaves(error: BaseException) -> list[BaseException]:
    """Return the errors of a group and of the groups in it; an error that is not a group by itself."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for member in error.exceptions for leaf in leaves(member)]
    return [error]


def said(error: BaseException) -> list[Any]:
    """Return what a program may say of an error that it caught."""
    if isinstance(error, BaseExceptionGroup):
        return ["group", sorted(str(said(leaf)) for leaf in leaves(error))]
    kind = error.type if isinstance(error, StepFailed) and not isinstance(error, StepTimedOut) else ""
    return [type(error).__name__, kind]


__all__ = ["CHILD", "DAY", "Interpreter", "Mine", "leaves", "said"]
