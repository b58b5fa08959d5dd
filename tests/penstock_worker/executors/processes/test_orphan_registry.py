from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from penstock_worker.executors.processes.orphan_registry import OrphanRegistry
from tests.penstock_worker.executors.runs import until


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        yield process
        process.kill()


async def _killer(but: set[int]) -> psutil.Process:
    """The killer that is not one of these. A process that is just starting shows no command line yet."""
    found: list[psutil.Process] = []

    def look() -> bool:
        found[:] = [each for each in psutil.Process().children() if each.pid not in but and _is_killer(each)]
        return bool(found)

    await until(look)
    return found[0]


def _is_killer(process: psutil.Process) -> bool:
    return any("orphan_killer.py" in part for part in process.cmdline())


async def test_a_watched_process_is_killed_when_the_watch_ends(sleeper: subprocess.Popen[bytes]) -> None:
    watch = OrphanRegistry()
    watch.mark()
    watch.add(sleeper.pid)
    watch.close()
    await until(lambda: sleeper.poll() == -9)


async def test_a_process_that_ended_before_is_left_alone(sleeper: subprocess.Popen[bytes]) -> None:
    watch = OrphanRegistry()
    watch.mark()
    watch.add(sleeper.pid)
    watch.remove(sleeper.pid)
    watch.close()
    assert sleeper.poll() is None


async def test_a_killer_that_was_killed_is_replaced_and_told_everything(
    sleeper: subprocess.Popen[bytes],
) -> None:
    before = {each.pid for each in psutil.Process().children()}
    watch = OrphanRegistry()
    watch.mark()
    watch.add(sleeper.pid)
    killer = await _killer(before)
    killer.kill()
    killer.wait()
    watch.add(999_999_999)
    successor = await _killer(before | {killer.pid})
    assert successor.pid != killer.pid
    watch.close()
    await until(lambda: sleeper.poll() == -9)


def test_a_process_started_during_the_death_has_a_known_mark() -> None:
    watch = OrphanRegistry()
    with subprocess.Popen(["sleep", "60"], env={**os.environ, **watch.mark()}) as unannounced:
        watch.close()
        assert unannounced.wait(30) == -9


def test_a_fork_of_a_worker_watches_its_own_children_only(sleeper: subprocess.Popen[bytes]) -> None:
    program = (
        "import os, sys; from penstock_worker.executors.processes.orphan_registry import OrphanRegistry;"
        "watch = OrphanRegistry(); watch.mark();"
        "watch.add(int(sys.argv[1])); pid = os.fork();"
        "watch.mark(); watch.close() if pid == 0 else (os.waitpid(pid, 0), watch.remove(int(sys.argv[1])));"
        "watch.close()"
    )
    subprocess.run([sys.executable, "-c", program, str(sleeper.pid)], check=True)
    assert sleeper.poll() is None
