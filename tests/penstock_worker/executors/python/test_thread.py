from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

from penstock.run.context import current
from penstock.run.task_executors import attempt
from penstock_worker.executors.python.thread import ThreadExecutor
from tests.penstock_worker.executors.runs import run_of, until

HANGS_AND_ENDS = """
import asyncio, threading
from penstock.run.task_executors import attempt
from penstock_worker.executors.python.thread import ThreadExecutor
from tests.penstock_worker.executors.runs import run_of

def hang():
    threading.Event().wait()

async def main():
    executor = ThreadExecutor(capacity=1)
    outcome = await attempt(executor, run_of(hang, timeout=0.01, grace=0.01)[0])
    print(outcome.kind, executor.metrics().leaked)
    await executor.close(0)

asyncio.run(main())
"""


async def test_a_function_that_looks_whether_it_was_cancelled_leaks_nothing() -> None:
    ended = threading.Event()

    def polite() -> None:
        while not current().cancelled:
            threading.Event().wait(0.005)
        ended.set()

    executor = ThreadExecutor(capacity=1)
    outcome = await attempt(executor, run_of(polite, timeout=0.02)[0])
    assert outcome.kind == "timed_out"
    assert ended.is_set()
    assert (executor.metrics().leaked, executor.metrics().available) == (0, 1)
    await executor.close(0)


async def test_a_leaked_thread_can_neither_log_nor_finish_any_more() -> None:
    release, ended = threading.Event(), threading.Event()

    def stubborn() -> str:
        print("before")
        release.wait(30)
        current().log("after")
        ended.set()
        return "too late"

    executor = ThreadExecutor(capacity=1)
    run, lines = run_of(stubborn, timeout=0.02, grace=0.01)
    run.log("log", "before")
    assert (await attempt(executor, run)).kind == "timed_out"
    release.set()
    await until(executor.has_capacity)
    assert ended.is_set()
    assert lines == [("log", "before")]
    await executor.close(0)


async def test_threads_are_used_again() -> None:
    executor = ThreadExecutor(capacity=4)
    names = {(await attempt(executor, run_of(_thread)[0])).result for _ in range(5)}
    assert len(names) == 1
    assert names != {threading.current_thread().name}
    await executor.close(0)


async def test_a_coroutine_function_gets_a_loop_of_its_own_there() -> None:
    async def action() -> bool:
        await asyncio.sleep(0)
        return threading.current_thread() is threading.main_thread()

    executor = ThreadExecutor(capacity=1)
    assert (await attempt(executor, run_of(action)[0])).result is False
    await executor.close(0)


def test_a_function_that_hangs_does_not_keep_the_worker_from_ending() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", HANGS_AND_ENDS], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout.split()[-2:] == ["timed_out", "1"], "after what was logged"


def _thread() -> str:
    return threading.current_thread().name


FORKS = """
import asyncio
from penstock.run.task_executors import attempt
from penstock_worker.executors.python.async_ import AsyncExecutor
from penstock_worker.executors.python.thread import ThreadExecutor
from tests.penstock_worker.executors import victims
from tests.penstock_worker.executors.runs import run_of

async def main():
    executor = ThreadExecutor(capacity=1)
    print((await attempt(executor, run_of(victims.fork_and_return)[0])).result)
    print((await attempt(executor, run_of(victims.fork_and_return, {"status": 3})[0])).result)
    await executor.close(0)
    print((await attempt(AsyncExecutor(), run_of(victims.fork_in_a_coroutine)[0])).result)

asyncio.run(main())
"""


def test_forked_process_ends_when_it_returns() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS], capture_output=True, text=True, timeout=60
    )
    ends = [line for line in ran.stdout.splitlines() if line.startswith("ended")]
    assert ends == ["ended with 0", "ended with 3", "ended with 0"]
