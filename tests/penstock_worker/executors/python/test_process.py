from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import psutil
import pytest

from penstock.run.task_executors import Outcome, attempt
from penstock_worker.executors.python import frames
from penstock_worker.executors.python.process import ProcessExecutor
from tests.crash.processes import python_path
from tests.penstock_worker.executors import victims
from tests.penstock_worker.executors.runs import run_of, until

WORKER = """
import asyncio, sys
from penstock.run.task_executors import attempt
from penstock_worker.executors.python.process import ProcessExecutor
from tests.penstock_worker.executors import victims
from tests.penstock_worker.executors.runs import run_of

async def main():
    executor = ProcessExecutor(capacity=1)
    await attempt(executor, run_of(victims.with_a_grandchild, {"path": sys.argv[1]})[0])

asyncio.run(main())
"""
SCRIPT = """
import asyncio
from penstock.run.task_executors import attempt
from penstock.testing.scenarios import ScenarioAction
from penstock_worker.executors.python.process import ProcessExecutor
from tests.penstock_worker.executors.runs import run_of

class Money:
    pass

class Pay(ScenarioAction):
    def bind(self, params):
        return {"money": Money()}

def pay(money):
    return isinstance(money, Money)

async def main():
    executor = ProcessExecutor(capacity=1)
    run, _ = run_of(pay)
    run.action = Pay("shop.pay", pay)
    print((await attempt(executor, run)).result)
    await executor.close(0)

if __name__ == "__main__":
    asyncio.run(main())
"""


@pytest.fixture
async def executor() -> AsyncIterator[ProcessExecutor]:
    executor = ProcessExecutor(capacity=2, jobs_per_child=4)
    yield executor
    await executor.close(0)


async def _do(executor: ProcessExecutor, function: Callable[..., Any], **params: Any) -> Outcome:
    return await attempt(executor, run_of(function, params)[0])


async def test_a_child_is_used_again_and_replaced_after_its_share_of_jobs(executor: ProcessExecutor) -> None:
    pids = [(await _do(executor, victims.own_pid)).result for _ in range(6)]
    assert len(set(pids[:4])) == 1
    assert len(set(pids[4:])) == 1
    assert pids[0] != pids[4]
    assert os.getpid() not in pids


async def test_warm_children_are_there_before_the_first_attempt() -> None:
    executor = ProcessExecutor(capacity=2, warm=1)
    await executor.open()
    before = {child.pid for child in psutil.Process().children()}
    pid = (await _do(executor, victims.own_pid)).result
    assert pid in before
    await executor.close(0)
    assert _gone(pid)


async def test_a_segmentation_fault_fails_its_attempt_and_leaves_its_traceback(
    executor: ProcessExecutor,
) -> None:
    outcome = await _do(executor, victims.segfault)
    assert outcome.error is not None
    assert outcome.error.type == "ProcessDied"
    assert "SIGSEGV" in outcome.error.message
    assert "in segfault" in outcome.error.traceback
    assert (await _do(executor, victims.own_pid)).kind == "completed"


async def test_traceback_of_a_child_shows_only_its_function(executor: ProcessExecutor) -> None:
    error = (await _do(executor, victims.fail)).error
    assert error is not None
    files = [line.split('"')[1] for line in error.traceback.splitlines() if line.startswith("  File ")]
    assert files == [victims.__file__]
    assert 'raise KeyError("glue")' in error.traceback


async def test_leaving_the_interpreter_fails_its_attempt(executor: ProcessExecutor) -> None:
    abrupt = await _do(executor, victims.exit_now, status=3)
    assert abrupt.error is not None
    assert (abrupt.error.type, abrupt.error.retryable) == ("ProcessDied", None)
    assert "exit status 3" in abrupt.error.message
    polite = await _do(executor, victims.exit_politely)
    assert polite.error is not None
    assert polite.error.type == "SystemExit"


async def test_a_child_that_closes_its_connection_is_killed(executor: ProcessExecutor) -> None:
    outcome = await _do(executor, victims.close_everything)
    assert outcome.error is not None
    assert outcome.error.type == "ProcessDied"
    assert executor.has_capacity()


async def test_a_child_that_talks_nonsense_is_killed(executor: ProcessExecutor) -> None:
    outcome = await _do(executor, victims.interfere)
    assert outcome.error is not None
    assert outcome.error.type == "ProcessDied"
    assert (await _do(executor, victims.own_pid)).kind == "completed"


async def test_last_words_of_cancelled_work_are_kept(executor: ProcessExecutor, tmp_path: Path) -> None:
    path = tmp_path / "state"
    run, lines = run_of(victims.say_goodbye, {"path": str(path)})
    task = asyncio.create_task(attempt(executor, run))
    await until(lambda: path.exists() and path.read_text() == "began")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert lines == [("stdout", "goodbye")]


async def test_printed_and_logged_lines_come_in_order(executor: ProcessExecutor) -> None:
    run, lines = run_of(victims.say_in_every_way)
    await attempt(executor, run)
    assert lines == [("stdout", "printed"), ("stderr", "complained"), ("log", "logged")]


async def test_output_of_c_code_and_grandchildren_is_kept_too(executor: ProcessExecutor) -> None:
    run, lines = run_of(victims.write_natively)
    await attempt(executor, run)
    assert sorted(lines) == [("stderr", "from C"), ("stdout", "from a grandchild")]


async def test_memory_is_limited_per_attempt(executor: ProcessExecutor) -> None:
    limited = {"memory_limit": 64 * 2**20}
    outcome = await attempt(executor, run_of(victims.allocate, {"megabytes": 256}, options=limited)[0])
    assert outcome.error is not None
    assert outcome.error.type == "MemoryError"
    assert (await _do(executor, victims.allocate, megabytes=256)).result == 256 * 2**20
    fits = await attempt(executor, run_of(victims.allocate, {"megabytes": 16}, options=limited)[0])
    assert fits.kind == "completed"


@pytest.mark.parametrize("action", [victims.tidy, victims.tidy_coroutine, victims.tidy_slowly])
async def test_cancelled_work_gets_to_tidy_up(
    executor: ProcessExecutor, action: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "state"
    task = asyncio.create_task(_do(executor, action, path=str(path)))
    await until(lambda: path.exists() and path.read_text() == "began")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert path.read_text() == "tidied"


async def test_work_that_did_not_hear_of_its_cancellation_is_told_again(
    executor: ProcessExecutor, tmp_path: Path
) -> None:
    path = tmp_path / "state"
    task = asyncio.create_task(_do(executor, victims.tidy_what_was_not_heard, path=str(path)))
    await until(lambda: path.exists() and path.read_text() == "began")
    task.cancel()
    await asyncio.sleep(0.02)
    path.with_name("state.sent").touch()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert path.read_text() == "tidied"


async def test_work_that_ignores_its_cancellation_is_killed_after_the_grace(
    executor: ProcessExecutor, tmp_path: Path
) -> None:
    path = tmp_path / "pid"
    run, _ = run_of(victims.ignore_everything, {"path": str(path)}, grace=0.1)
    task = asyncio.create_task(attempt(executor, run))
    await until(lambda: path.exists() and path.read_text() != "")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not psutil.pid_exists(int(path.read_text()))


async def test_a_second_cancellation_kills_at_once(executor: ProcessExecutor, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    run, _ = run_of(victims.ignore_everything, {"path": str(path)}, grace=3600)
    task = asyncio.create_task(attempt(executor, run))
    await until(lambda: path.exists() and path.read_text() != "")
    task.cancel()
    await asyncio.sleep(0.05)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: _gone(int(path.read_text())))


async def test_grandchildren_end_with_the_attempt(executor: ProcessExecutor, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    task = asyncio.create_task(_do(executor, victims.with_a_grandchild, path=str(path)))
    await until(lambda: path.exists() and path.read_text() != "")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: _gone(int(path.read_text())))


async def test_children_and_grandchildren_die_with_a_worker_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    with _started(WORKER, str(path)) as worker:
        await until(lambda: path.exists() and path.read_text() != "")
        family = psutil.Process(worker.pid).children(recursive=True)
        assert len(family) >= 3, "an orphan killer, a child, a grandchild"
        worker.send_signal(signal.SIGKILL)
    await until(lambda: all(_gone(each.pid) for each in family))


async def test_a_steering_value_comes_back_from_a_child(executor: ProcessExecutor) -> None:
    later = (await _do(executor, victims.retry)).error
    never = (await _do(executor, victims.refuse)).error
    deferred = await _do(executor, victims.defer)
    asked = await _do(executor, victims.ask)
    assert later is not None
    assert never is not None
    assert (later.retryable, later.retry_after, later.message) == (True, 7.0, "later")
    assert (never.retryable, never.message) == (False, "never")
    assert deferred.until is not None
    assert (deferred.kind, deferred.until.isoformat(), deferred.carry) == (
        "deferred",
        "2030-01-01T00:00:00+00:00",
        {"state": {"page": 3}},
    )
    assert asked.inquiry is not None
    assert (asked.kind, asked.inquiry["prompt"], asked.inquiry["timeout"]) == ("inquiry", "Go on?", 60.0)


async def test_arguments_are_python_objects(executor: ProcessExecutor) -> None:
    assert (await _do(executor, victims.describe, thing=Path("x"))).result == "PosixPath"


async def test_an_action_in_the_place_of_its_function_is_found(executor: ProcessExecutor) -> None:
    assert (await _do(executor, victims.wrapped.function, x=1)).result == 2


async def test_a_call_that_no_child_could_receive_fails_for_good(executor: ProcessExecutor) -> None:
    nameless = await _do(executor, lambda: 1)
    unsendable = await _do(executor, victims.describe, thing=lambda: 1)
    unknown = await attempt(executor, run_of(victims.own_pid, options={"memory": 1})[0])
    for outcome in (nameless, unsendable, unknown):
        assert outcome.error is not None
        assert (outcome.error.type, outcome.error.retryable) == ("DefinitionError", False)


def test_functions_of_the_main_script_run_in_children(tmp_path: Path) -> None:
    script = tmp_path / "shop.py"
    script.write_text(SCRIPT)
    env = {**os.environ, "PYTHONPATH": python_path()}
    ended = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=env, timeout=60)
    assert ended.stdout.strip() == "True", ended.stderr


def _started(program: str, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", program, *arguments])


def _gone(pid: int) -> bool:
    """Not there, or dead and waiting for its parent to notice."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def test_batch_in_a_child_keeps_the_lines_and_costs_of_its_items() -> None:
    executor = ProcessExecutor(capacity=1)
    runs = [run_of(victims.of_a_batch, input=number) for number in (1, 2, 3)]
    run, lines = run_of(victims.of_a_batch, items=[item for item, _ in runs])
    try:
        outcome = await attempt(executor, run)
    finally:
        await executor.close(0)
    assert outcome.items is not None
    assert [item.result for item in outcome.items] == [2, None, 6]
    assert outcome.items[1].error
    assert outcome.items[1].error.message == "no two"
    assert [item.costs for item in outcome.items] == [{"tokens": Decimal(number)} for number in (1, 2, 3)]
    assert lines == [("stdout", "3 items")]
    assert [own for _, own in runs] == [[("log", f"item {number}")] for number in (1, 2, 3)]


async def test_child_that_dies_fails_the_whole_batch() -> None:
    executor = ProcessExecutor(capacity=1)
    items = [run_of(victims.of_a_batch, input=number)[0] for number in (-1, 2)]
    try:
        outcome = await attempt(executor, run_of(victims.of_a_batch, items=items)[0])
    finally:
        await executor.close(0)
    assert (outcome.kind, outcome.items) == ("failed", None)
    assert outcome.error
    assert outcome.error.type == "ProcessDied"


def test_invalid_frames_of_a_batch_are_refused() -> None:
    good = frames.outcome_frame(Outcome("batch", items=[Outcome("completed", b"1"), Outcome.timed_out(3)]))
    kind, body = good[frames.HEADER : frames.HEADER + 1], good[frames.HEADER + 1 :]
    items = frames.outcome_of(kind, body).items or []
    assert [(item.kind, item.result_json) for item in items] == [("completed", b"1"), ("timed_out", None)]
    first = frames.HEADER + len(b"R1")
    for cut in {*range(1, len(body))} - {first}:  # a whole item is missing there, which the worker notices
        with pytest.raises(ValueError, match=r"cut off|JSON|unexpected"):
            frames.outcome_of(kind, body[:cut])
    with pytest.raises(ValueError, match="frame of their own"):
        frames.outcome_of(frames.OUTCOME, b'{"kind": "batch"}')


async def test_forked_process_does_not_answer_for_its_parent() -> None:
    executor = ProcessExecutor(capacity=1)
    run, lines = run_of(victims.fork_and_return)
    assert (await attempt(executor, run)).result == "ended with 0"
    assert ("stdout", "printed by the forked process") in lines
    assert (await _do(executor, victims.fork_and_return, status=3)).result == "ended with 3"
    assert (await _do(executor, victims.fork_in_a_coroutine)).result == "ended with 0"
    run, lines = run_of(victims.fork_and_raise)
    assert (await attempt(executor, run)).result == "ended with 1"
    assert ("stderr", "ValueError: in the forked process") in lines
    for thing, name in [(1, "int"), ("x", "str"), ([], "list")]:
        assert (await _do(executor, victims.describe, thing=thing)).result == name
    await executor.close(0)


async def test_forked_process_sends_no_requests(executor: ProcessExecutor) -> None:
    assert (await _do(executor, victims.publish_from_a_fork)).result == "OutsideRun"
