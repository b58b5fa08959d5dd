"""The trials of both kinds of clusters: flows of a whole installation, and losses."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from penstock import Rule
from penstock.errors import ExecutionFailed
from penstock.run.task_executors import TaskExecutor, attempt
from tests.compute.actions import again, counted, double, log_in, once
from tests.compute.client_that_dies import executor_of, run_of
from tests.compute.clusters import environment
from tests.flows.installation import Installation
from tests.penstock_worker.executors.runs import until
from tests.servers.process import Process

SECRET = "open-sesame-7"
WAIT = 90


class ClusterFlows:
    """Subclass it as `Test...` with the kind of cluster and, as fixtures' work, its `address`."""

    kind: str
    address: str

    def lose(self, pids: tuple[int, int]) -> None:
        """Kill the process of the cluster that an attempt runs on: `pids` are those of the attempt and of its parent."""
        raise NotImplementedError

    def said(self) -> str:
        """All that the cluster has logged."""
        raise NotImplementedError

    async def test_an_event_starts_an_action_there_and_its_result_and_log_come_back(
        self, house: Installation
    ) -> None:
        rule = Rule("compute.on_count", trigger=counted, action=double, params={"n": "{{ payload.n }}"})
        await self._start(house, rule)
        await house.client.publish("compute.counted", {"n": 21})
        await house.until("select 1 from execution where status = 'completed'", seconds=WAIT)
        [row] = await house.rows("select id from execution")
        assert await house.client.result(row["id"], timeout=WAIT) == 42
        await house.until("select 1 from log_line where line = 'doubling 21'", seconds=WAIT)

    async def test_it_finds_its_cluster_and_the_cluster_shows_no_secret(self, house: Installation) -> None:
        await self._start(house)
        address = await house.client.run("compute.log_in", {"password": SECRET}, timeout=WAIT)
        assert address.rpartition(":")[2].isdecimal()
        await house.until("select 1 from log_line where line = 'with ***'", seconds=WAIT)
        assert SECRET not in str(await house.rows("select line from log_line"))
        assert SECRET not in self.said()

    async def test_what_is_lost_there_runs_again(self, house: Installation, tmp_path: Path) -> None:
        await self._start(house)
        id = await house.client.start("compute.again", {"folder": str(tmp_path)})
        self.lose(await _begun(tmp_path, 1))
        self.recover()
        await _begun(tmp_path, 2)
        (tmp_path / "go").touch()
        assert await house.client.result(id, timeout=WAIT) == "attempt 2"
        [row] = await house.rows("select failures, (select outcome from attempt) as outcome from execution")
        assert tuple(row) == (1, "failed")

    async def test_what_must_run_at_most_once_fails_when_it_is_lost_there(
        self, house: Installation, tmp_path: Path
    ) -> None:
        await self._start(house)
        id = await house.client.start("compute.once", {"folder": str(tmp_path)})
        self.lose(await _begun(tmp_path, 1))
        self.recover()
        with pytest.raises(ExecutionFailed, match="WorkerLost"):
            await house.client.result(id, timeout=WAIT)
        assert [file.name for file in tmp_path.glob("*.pid")] == ["1.pid"]

    async def test_what_a_dead_worker_of_penstock_left_has_ended_when_the_next_attempt_begins(
        self, tmp_path: Path
    ) -> None:
        execution = uuid4()
        words = [
            sys.executable,
            "-m",
            "tests.compute.client_that_dies",
            self.kind,
            self.address,
            str(execution),
            str(tmp_path),
        ]
        dead = Process(words, log=tmp_path / "log", env=environment(), spawn={})
        first, _ = await _begun(tmp_path, 1)
        dead.end(signal.SIGKILL, 10)
        async with _opened(executor_of(self.kind, self.address)) as executor:
            second = asyncio.create_task(attempt(executor, run_of(execution, str(tmp_path), 2)))
            await until(lambda: (tmp_path / "2.pid").exists() or second.done(), WAIT)
            assert not _lives(first), "two attempts of one execution ran at once"
            (tmp_path / "go").touch()
            assert (await second).result == "attempt 2"

    def recover(self) -> None:
        """Whatever is to be there again after a loss."""

    async def _start(self, house: Installation, *more: object) -> None:
        actions = [action.with_options(executor=self.kind) for action in (double, log_in, again, once)]
        await house.apply(*actions, counted, *more)
        await house.executor()
        await house.worker(*actions, executors={self.kind: {"address": self.address}})


@asynccontextmanager
async def _opened(executor: TaskExecutor) -> AsyncIterator[TaskExecutor]:
    await executor.open()
    try:
        yield executor
    finally:
        await executor.close(1)


async def _begun(folder: Path, number: int) -> tuple[int, int]:
    file = folder / f"{number}.pid"
    await until(lambda: file.exists() and file.read_text().count(" ") == 1, WAIT)
    pid, parent = map(int, file.read_text().split())
    return pid, parent


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
