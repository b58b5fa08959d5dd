from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from penstock.language.definitions.program_actions import command_action
from penstock.run.run_log import RunLog
from penstock.run.task_executors import Outcome, attempt
from penstock_worker.executors.processes.command import CommandExecutor
from tests.penstock_worker.executors.runs import Lines, run_of, until

WORKER = """
import asyncio, sys
from penstock.run.task_executors import attempt
from penstock_worker.executors.processes.command import CommandExecutor
from tests.penstock_worker.executors.runs import run_of

async def main():
    executor = CommandExecutor()
    await attempt(executor, run_of({"command": ["sh", "-c", sys.argv[1]]})[0])

asyncio.run(main())
"""

executor = CommandExecutor(capacity=4)


async def _sh(script: str, params: dict[str, Any] | None = None, **options: Any) -> tuple[Outcome, Lines]:
    run, lines = run_of({"command": ["sh", "-c", script], **options}, params)
    return await attempt(executor, run), lines


async def test_parameters_go_in_and_the_result_comes_out_as_json() -> None:
    outcome, lines = await _sh("cat", {"name": "ü", "n": [1, 2]})
    assert outcome.result == {"name": "ü", "n": [1, 2]}
    assert lines == []


async def test_the_result_is_the_json_that_ends_the_output() -> None:
    outcome, lines = await _sh("echo reading; echo writing; echo '[1,'; echo ' 2]'")
    assert outcome.result == [1, 2]
    assert lines == [("stdout", "reading"), ("stdout", "writing")]


async def test_standard_error_is_the_log_line_by_line() -> None:
    outcome, lines = await _sh("echo one >&2; printf 'two\\nthree' >&2")
    assert (outcome.kind, outcome.result) == ("completed", None)
    assert lines == [("stderr", "one"), ("stderr", "two"), ("stderr", "three")]


async def test_output_can_be_taken_as_text_or_not_at_all() -> None:
    assert (await _sh("echo hello", output="text"))[0].result == "hello\n"
    outcome, lines = await _sh("echo hello", output="none")
    assert (outcome.kind, outcome.result, lines) == ("completed", None, [("stdout", "hello")])


@pytest.mark.parametrize(
    ("script", "kind", "retryable"),
    [
        ("exit 1", "ExitStatus", None),
        ("exit 75", "ExitStatus", True),
        ("exit 65", "ExitStatus", False),
        ("kill -SEGV $$", "Killed", None),
    ],
)
async def test_the_exit_status_says_whether_to_retry(script: str, kind: str, retryable: bool | None) -> None:
    outcome, _ = await _sh(f"echo the reason >&2; {script}")
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.retryable) == (kind, retryable)
    assert outcome.error.message.endswith(": the reason")
    assert outcome.error.traceback == "the reason\n"


async def test_a_program_that_is_not_there_is_a_failure() -> None:
    outcome = await attempt(executor, run_of({"command": ["no-such-program"]})[0])
    assert outcome.error is not None
    assert outcome.error.type == "CommandNotStarted"
    assert "no-such-program" in outcome.error.message


async def test_a_wrong_option_is_an_error_that_names_it() -> None:
    outcome = await attempt(executor, run_of({"comand": ["true"]})[0])
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.retryable) == ("DefinitionError", False)
    assert "comand" in outcome.error.message


async def test_parameters_that_do_not_fit_start_nothing(tmp_path: Path) -> None:
    action = command_action(
        "shop.touch",
        ["touch", str(tmp_path / "ran")],
        parameters={"n": {"type": "integer"}},
        options={"output": "none"},
    )
    run, _ = run_of(None, {"n": "seven"})
    run.action = action
    outcome = await attempt(executor, run)
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.retryable) == ("InvalidInput", False)
    assert not (tmp_path / "ran").exists()
    run.params = {"n": 7}
    assert (await attempt(executor, run)).kind == "completed"


async def test_the_worker_s_own_environment_stays_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", "postgresql://secret@db/x")
    monkeypatch.setenv("SHOP_KEY", "k")
    outcome, _ = await _sh("env", env={"COLOUR": "red"}, pass_env=["SHOP_KEY"], output="text")
    variables = dict(line.split("=", 1) for line in outcome.result.splitlines())
    assert (variables["COLOUR"], variables["SHOP_KEY"]) == ("red", "k")
    assert "PENSTOCK_DATABASE_URL" not in variables
    assert variables["PENSTOCK_ATTEMPT"] == "1"
    assert variables["PENSTOCK_IDEMPOTENCY_TOKEN"] == variables["PENSTOCK_EXECUTION_ID"]
    assert variables["PENSTOCK_ATTEMPT_TOKEN"] == f"{variables['PENSTOCK_EXECUTION_ID']}:1"


async def test_it_runs_where_its_options_say(tmp_path: Path) -> None:
    assert (await _sh("pwd", cwd=str(tmp_path), output="text"))[0].result.strip() == str(tmp_path)


async def test_a_program_need_not_read_its_parameters() -> None:
    assert (await _sh("echo 1", {"big": "x" * 1_000_000}))[0].result == 1


async def test_a_program_told_to_end_may_say_its_last_words() -> None:
    run, lines = run_of(
        {
            "command": [
                "sh",
                "-c",
                "trap 'echo bye >&2; exit 0' TERM; echo up >&2; while :; do sleep 0.01; done",
            ]
        }
    )
    task = asyncio.create_task(attempt(executor, run))
    await until(lambda: ("stderr", "up") in lines)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert lines[-1] == ("stderr", "bye")


async def test_a_program_that_ignores_being_told_is_killed_after_the_grace() -> None:
    script = "trap '' TERM; echo $$ >&2; while :; do sleep 0.01; done"
    run, lines = run_of({"command": ["sh", "-c", script]}, grace=0.1)
    task = asyncio.create_task(attempt(executor, run))
    await until(lambda: bool(lines))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not psutil.pid_exists(int(lines[0][1]))


async def test_a_process_that_a_program_leaves_behind_is_killed() -> None:
    outcome, lines = await _sh("sleep 60 & echo $! >&2; echo 1")
    assert outcome.result == 1
    await until(lambda: _gone(int(lines[0][1])))


async def test_a_flood_on_either_stream_is_capped() -> None:
    script = "yes on | head -c 3000000; yes err | head -c 3000000 >&2; echo; echo '\"end\"'"
    run, lines = run_of({"command": ["sh", "-c", script]})
    run.log = RunLog(lambda stream, line: lines.append((stream, line)), 10_000)
    outcome = await attempt(executor, run)
    assert outcome.result == "end"
    assert sum(len(line) + 1 for _, line in lines) < 11_000


async def test_a_result_that_was_cut_off_is_refused() -> None:
    run, _ = run_of({"command": ["sh", "-c", "yes 1 | head -c 3000"], "output": "text"}, result_limit=1000)
    outcome = await attempt(executor, run)
    assert outcome.error is not None
    assert outcome.error.type == "ResultNotStorable"


async def test_programs_die_with_a_worker_that_is_killed() -> None:
    script = "sleep 61 & sleep 62"
    with _started(WORKER, script) as worker:
        family: list[psutil.Process] = []

        def started() -> bool:
            family[:] = psutil.Process(worker.pid).children(recursive=True)
            return len([each for each in family if each.name() == "sleep"]) == 2

        await until(started)
        worker.send_signal(signal.SIGKILL)
    await until(lambda: all(_gone(each.pid) for each in family))


def _started(program: str, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", program, *arguments])


def _gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
