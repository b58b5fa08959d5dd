"""The loop of a durable function: what it runs, what it refuses, and what it keeps."""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections.abc import Callable
from typing import Any

import pytest

from penstock.engine.durable import run_loop
from penstock.engine.durable.branches import Branch, branch_here
from penstock.engine.durable.run_loop import RunLoop
from penstock.errors import DefinitionError

NUMBER: contextvars.ContextVar[int] = contextvars.ContextVar("number", default=0)


def _loop() -> RunLoop:
    return RunLoop()  # type: ignore[abstract]


def _run(function: Callable[[], Any]) -> Any:
    """Run a coroutine function as the function of a loop, and return its result."""
    loop = _loop()
    task = loop.start(function(), loop.root)
    loop.run()
    return task.result()


async def test_run_brings_back_outer_loop_and_hooks() -> None:
    outside, hooks = asyncio.get_running_loop(), sys.get_asyncgen_hooks()
    assert hooks.firstiter is not None

    async def look() -> Any:
        return asyncio.get_running_loop(), sys.get_asyncgen_hooks()

    inside, inside_hooks = _run(look)
    assert isinstance(inside, RunLoop)
    assert (inside_hooks.firstiter, inside_hooks.finalizer) == (None, None)
    assert asyncio.get_running_loop() is outside
    assert sys.get_asyncgen_hooks() == hooks


async def test_loop_and_hooks_come_back_after_spinning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_loop, "TURNS_LIMIT", 10)
    outside, hooks, turns = asyncio.get_running_loop(), sys.get_asyncgen_hooks(), list[int]()

    async def spin() -> None:
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    loop = _loop()
    loop.start(spin(), loop.root)
    with pytest.raises(DefinitionError, match="ran 10 times"):
        loop.run()
    assert len(turns) == 10
    assert asyncio.get_running_loop() is outside
    assert sys.get_asyncgen_hooks() == hooks
    loop.clear()
    loop.run()
    assert len(turns) == 10


def test_branches_are_numbered_by_their_maker() -> None:
    async def leaf() -> str:
        return branch_here().path

    async def maker() -> list[str]:
        both = [asyncio.create_task(leaf()), asyncio.create_task(leaf())]
        return [branch_here().path, *await asyncio.gather(*both)]

    async def root() -> list[Any]:
        first, second = asyncio.create_task(maker()), asyncio.create_task(maker())
        return [branch_here().path, await first, await second]

    assert _run(root) == ["", ["1/", "1/1/", "1/2/"], ["2/", "2/1/", "2/2/"]]


def test_callback_belongs_to_the_function() -> None:
    """A callback of a future runs in no task."""
    paths: list[str] = []

    async def root() -> None:
        future = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda _: paths.append(branch_here().path))
        future.add_done_callback(lambda _: asyncio.ensure_future(note()))
        future.set_result(None)
        await asyncio.sleep(0)

    async def note() -> None:
        paths.append(branch_here().path)

    _run(root)
    assert paths == ["", "1/"]


async def test_branch_is_asked_for_outside() -> None:
    with pytest.raises(DefinitionError, match="outside of it"):
        branch_here()
    with pytest.raises(DefinitionError, match="outside of it"):
        await asyncio.to_thread(branch_here)


def test_names_and_contexts_of_tasks_are_kept() -> None:
    async def number() -> int:
        return NUMBER.get()

    async def root() -> list[Any]:
        context = contextvars.copy_context()
        context.run(NUMBER.set, 7)
        loop = asyncio.get_running_loop()
        named = loop.create_task(number(), name="named", context=context)
        called: list[int] = []
        loop.call_soon(lambda number: called.append(number + NUMBER.get()), 5, context=context)
        return [named.get_name(), await named, called, NUMBER.get()]

    assert _run(root) == ["named", 7, [12], 0]


def test_cancelled_callback_is_not_called() -> None:
    called: list[str] = []

    async def root() -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(called.append, "cancelled").cancel()
        loop.call_soon(called.append, "called")
        await asyncio.sleep(0)

    _run(root)
    assert called == ["called"]


def test_exit_of_task_is_its_error() -> None:
    async def exits() -> None:
        raise SystemExit(3)

    async def root() -> str:
        task = asyncio.create_task(exits())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return type(task.exception()).__name__

    assert _run(root) == "SystemExit"


def test_open_tasks_are_in_order_and_ended_ones_are_forgotten() -> None:
    async def at_once() -> None:
        """End."""

    loop = _loop()
    waits = [loop.start(asyncio.sleep(0), Branch(f"{number}/")) for number in range(3)]
    for number in range(1000):
        loop.start(at_once(), Branch(f"{number}/"))
        if number % 10 == 9:
            loop.run()
        assert len(loop._tasks) <= 64 + 2 * 13, "64, and twice the open tasks"
    assert loop._prune_at >= 64, "looking through all tasks for each new one takes quadratic time"
    assert loop.open_tasks() == []
    held = [loop.start(_forever(), Branch(f"{number}/")) for number in range(200)]
    loop.run()
    assert loop.open_tasks() == held
    assert all(task.done() for task in waits)
    loop.clear()
    assert loop.open_tasks() == []
    assert all(not task._log_destroy_pending for task in held)  # type: ignore[attr-defined]


async def _forever() -> None:
    await asyncio.Event().wait()


REFUSED: dict[str, Callable[[asyncio.AbstractEventLoop], Any]] = {
    "call_later": lambda loop: loop.call_later(1, print),
    "call_at": lambda loop: loop.call_at(1, print),
    "run_in_executor": lambda loop: loop.run_in_executor(None, print),
    "getaddrinfo": lambda loop: loop.getaddrinfo("localhost", 80),
    "create_connection": lambda loop: loop.create_connection(print, "localhost", 80),
    "subprocess_exec": lambda loop: loop.subprocess_exec(print, "true"),
    "add_reader": lambda loop: loop.add_reader(0, print),
    "set_task_factory": lambda loop: loop.set_task_factory(None),
    "run_until_complete": lambda loop: loop.run_until_complete(_forever()),
}


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize("name", REFUSED)
def test_outside_is_refused_with_a_replacement(name: str) -> None:
    with pytest.raises(DefinitionError, match="cannot be used in a durable function") as refused:
        REFUSED[name](_loop())
    timer = name in ("call_later", "call_at")
    assert ("timer of asyncio" if timer else f"event loop's {name} ") in refused.value.message
    assert ("ctx.sleep" if timer else "ctx.step") in (refused.value.hint or "")


def test_loop_answers_questions_of_asyncio() -> None:
    loop: asyncio.AbstractEventLoop = _loop()
    assert (loop.get_debug(), loop.is_running(), loop.is_closed(), loop.time()) == (False, True, False, 0.0)
    assert loop.get_exception_handler() is None
    assert loop.get_task_factory() is None
    loop.call_exception_handler({"message": "dropped"})
