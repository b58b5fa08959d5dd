"""Actions that publish events and start executions through their worker, from all task executors."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any
from uuid import UUID

from penstock import (
    AskInquiry,
    Defer,
    DurableContext,
    Recovery,
    Retry,
    Trigger,
    action,
    command_action,
    current,
)
from penstock.errors import Conflict, InvalidInput, NotFound, OutsideRun, PenstockError

paid = Trigger(
    "inside.paid", schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
)


@action(pack="inside")
async def double(n: int) -> int:
    return 2 * n


@action(pack="inside")
async def publishes(n: int, key: str | None = None, transactional: bool = False) -> str:
    if transactional:
        await current().publish("inside.paid", {"n": n}, key=key, transactional=True)
        return "kept"
    return str(await current().publish("inside.paid", {"n": n}, key=key))


@action(pack="inside")
async def starts(n: int, key: str | None = None) -> str:
    return str(await current().start("inside.double", {"n": n}, key=key))


@action(pack="inside")
async def starts_by_reference(n: int) -> str:
    return str(await double.start(n=n))


@action(pack="inside")
async def runs(n: int) -> int:
    results = await asyncio.gather(
        current().run(double.call(n=n), timeout=20), current().run("inside.double", {"n": n}, timeout=20)
    )
    return sum(results)


@action(pack="inside", executor="thread")
def runs_in_thread(n: int) -> int:
    run = current().sync
    run.publish("inside.paid", {"n": n}, key="thread")
    run.start("inside.double", {"n": n}, key="thread")
    return int(run.run("inside.double", {"n": n}, timeout=20))


@action(pack="inside", executor="thread")
async def awaits_in_thread(n: int) -> int:
    return int(await current().run("inside.double", {"n": n}, timeout=20))


@action(pack="inside", executor="process")
def runs_in_process(n: int) -> int:
    run = current().sync
    run.publish("inside.paid", {"n": n}, key="process")
    run.start("inside.double", {"n": n}, transactional=True)
    with ThreadPoolExecutor(4) as threads:
        futures = [
            threads.submit(copy_context().run, run.run, "inside.double", {"n": n}, timeout=20)
            for _ in range(8)
        ]
        return sum(future.result() for future in futures)


@action(pack="inside", executor="process")
async def awaits_in_process(n: int) -> int:
    print("before the starts")
    return sum(
        await asyncio.gather(*(current().run("inside.double", {"n": n}, timeout=20) for _ in range(3)))
    )


@action(pack="inside", executor="process")
def wrong_in_process() -> list[str]:
    names = []
    for ref, params in (("inside.missing", {}), ("inside.double", {"n": "many"})):
        try:
            current().sync.start(ref, params)
        except (NotFound, InvalidInput) as error:
            names.append(type(error).__name__)
    return names


@action(pack="inside", executor="process")
def leaves_a_thread() -> None:
    ThreadPoolExecutor(1).submit(copy_context().run, current().sync.run, "inside.never", {}, timeout=60)


@action(pack="inside", route="nowhere")
async def never() -> None: ...


@action(pack="inside")
async def breaks() -> None:
    raise RuntimeError("no paper")


@action(pack="inside")
async def awaits_child(ref: str, levels: int = 1) -> None:
    if levels > 1:
        await current().run("inside.awaits_child", {"ref": ref, "levels": levels - 1})
    await current().run(ref, timeout=0.5)


@action(pack="inside")
async def runs_slowly(n: int) -> int:
    return int(await current().run("inside.double", {"n": n}))


@action(pack="inside")
async def starts_and_holds(n: int) -> None:
    await current().start("inside.double", {"n": n})
    await asyncio.sleep(60)


@action(pack="inside", executor="process")
def awaits_child_in_process(ref: str) -> None:
    current().sync.run(ref, timeout=0.5)


@action(pack="inside")
async def blocks_the_loop() -> None:
    current().sync.start("inside.double", {"n": 1})


@action(pack="inside")
async def conflicts() -> str:
    await current().start("inside.double", {"n": 1}, key="same")
    try:
        await current().start("inside.double", {"n": 2}, key="same")
    except Conflict:
        return "Conflict"
    return "none"


@action(pack="inside")
async def conflicts_at_its_end() -> None:
    await current().start("inside.double", {"n": 1}, key="at-the-end")
    await current().start("inside.double", {"n": 2}, key="at-the-end", transactional=True)


@action(pack="inside", retry={"max_attempts": 3, "initial_delay": 0.0})
async def fails_twice(n: int) -> int:
    run = current()
    await run.publish("inside.paid", {"n": n}, transactional=True)
    await run.start("inside.double", {"n": n}, transactional=True)
    await run.start("inside.double", {"n": 100 + n}, key=f"kept-{n}")
    if run.attempt < 3:
        raise Retry(after=0.0)
    return run.attempt


@action(pack="inside", retry={"max_attempts": 1})
async def fails(n: int) -> None:
    await current().publish("inside.paid", {"n": n}, transactional=True)
    raise ValueError("it fails after it published")


@action(pack="inside")
async def defers(n: int) -> None:
    await current().publish("inside.paid", {"n": n}, transactional=True)
    if current().state is None:
        raise Defer(delay=0.1, state="again")


@action(pack="inside")
async def asks(n: int, resume: bool = False) -> Any:
    run = current()
    await run.publish("inside.paid", {"n": n}, transactional=True)
    if resume and run.answers:
        return run.answers[0]
    return AskInquiry("Go on?", resume=resume)


@action(pack="inside")
async def waits_to_be_cancelled(n: int) -> None:
    await current().publish("inside.paid", {"n": n}, transactional=True)
    await asyncio.sleep(60)


@action(pack="inside")
async def durable_function(ctx: DurableContext) -> list[str]:
    errors = [await ctx.step("refused", publishes_at_the_end)]
    try:
        await current().publish("inside.paid", {"n": 1})
    except OutsideRun as error:
        errors.append(str(error))
    await ctx.step("published", publishes_in_step)
    return errors


async def publishes_at_the_end() -> str:
    try:
        await current().publish("inside.paid", {"n": 1}, transactional=True)
    except InvalidInput as error:
        return str(error)
    return "kept"


async def publishes_in_step() -> str:
    return str(await current().publish("inside.paid", {"n": 1}, key="step"))


@action(pack="inside")
async def receives(ctx: DurableContext) -> Any:
    return await ctx.signal("paid")


@action(pack="inside")
async def signals(run: str, value: Any, transactional: bool = False, fails: bool = False) -> Any:
    if transactional:
        await current().signal(UUID(run), "paid", value, transactional=True)
        if fails:
            raise ValueError("it fails after it signalled")
        return "kept"
    sent = await current().signal(UUID(run), "paid", value)
    return [sent.is_awaited, sent.awaits]


def _signal(run: str, value: Any) -> bool:
    sent = current().sync.signal(UUID(run), "paid", value)
    assert sent is not None
    return sent.is_awaited


@action(pack="inside", executor="thread")
def signals_in_thread(run: str, value: Any) -> bool:
    return _signal(run, value)


@action(pack="inside", executor="process")
def signals_in_process(run: str, value: Any) -> bool:
    return _signal(run, value)


@action(pack="inside")
async def signals_wrongly(run: str, name: str = "paid") -> str:
    try:
        await current().signal(UUID(run), name)
    except PenstockError as error:
        return type(error).__name__
    return "none"


@action(pack="inside")
async def passes_secret(password: str) -> str:
    await current().publish("inside.paid", {"n": 1, "text": f"with {password}"})
    return str(await current().start("inside.takes_secret", {"password": password}))


@action(pack="inside")
async def takes_secret(password: str) -> int:
    return len(password)


@action(
    pack="inside", retry={"max_attempts": 8, "initial_delay": 0.05}, recovery=Recovery(max_recoveries=100)
)
async def publishes_and_starts(n: int) -> int:
    run = current()
    await run.start("inside.double", {"n": 1_000_000 + n}, key=f"once-{n}")
    await run.publish("inside.paid", {"n": n}, transactional=True)
    await run.start("inside.double", {"n": n}, transactional=True)
    await asyncio.sleep(0.02)
    if (n + run.attempt) % 5 == 0:
        raise ValueError("one of five fails")
    return n


@action(pack="inside", route="quiet")
async def quiet(n: int) -> int:
    await asyncio.sleep(0.02)
    return n


@action(pack="inside", executor="thread", route="quiet")
def quiet_in_thread(n: int) -> int:
    time.sleep(0.02)
    return n


@action(pack="inside", executor="process", route="quiet")
def quiet_in_process(n: int) -> int:
    time.sleep(0.02)
    return n


@action(pack="inside", route="loud")
async def loud(n: int) -> int:
    await current().publish("inside.paid", {"n": n})
    await current().start("inside.double", {"n": n})
    await current().start("inside.double", {"n": n}, transactional=True)
    return n


def _publish_and_start(n: int) -> int:
    run = current().sync
    run.publish("inside.paid", {"n": n})
    run.start("inside.double", {"n": n})
    run.start("inside.double", {"n": n}, transactional=True)
    return n


@action(pack="inside", executor="thread", route="loud")
def loud_in_thread(n: int) -> int:
    return _publish_and_start(n)


@action(pack="inside", executor="process", route="loud")
def loud_in_process(n: int) -> int:
    return _publish_and_start(n)


calls_back = command_action(
    "inside.calls_back",
    [
        "python3",
        "-c",
        "import json, os, sys, time, pathlib\n"
        "path = pathlib.Path(json.load(sys.stdin)['path'])\n"
        "path.write_text(os.environ['PENSTOCK_TOKEN'])\n"
        "while path.exists(): time.sleep(0.05)\n",
    ],
    parameters={"type": "object", "properties": {"path": {"type": "string"}}},
)
shows_environment = command_action(
    "inside.shows_environment",
    [
        "sh",
        "-c",
        'echo "token $PENSTOCK_TOKEN" >&2; echo "[\\"$PENSTOCK_API_ADDRESS\\", \\"$PENSTOCK_TOKEN\\"]"',
    ],
)

ALL = [value for value in list(globals().values()) if hasattr(value, "ref") and not isinstance(value, type)]
