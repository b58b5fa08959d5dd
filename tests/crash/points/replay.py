"""Records the points of a scenario, and replays it once for each: killed there, and done by another process after it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from penstock.language.loading import Definitions
from penstock.operate.apply import register
from penstock.settings import Settings
from penstock.store.session.database import Database
from tests.crash.points.child import Job
from tests.crash.points.scenarios import SCENARIOS, Scenario
from tests.crash.points.sites import ROOT, Site, sites
from tests.crash.processes import python_path
from tests.servers import databases
from tests.servers.postgres import Postgres

LANES = 3


@dataclass
class Tally:
    """The tally of a replay: how often each point was passed, where a process ended, and the faults after it."""

    passed: dict[str, int] = field(default_factory=dict)
    ended: dict[str, int] = field(default_factory=dict)
    cut: dict[str, int] = field(default_factory=dict)
    not_reached: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def report(self) -> str:
        width = max(map(len, self.passed), default=10)
        lines = [
            f"{point:<{width}}  passed {count:>5}  killed {self.ended.get(point, 0):>3}  cut {self.cut.get(point, 0):>3}"
            for point, count in sorted(self.passed.items())
        ]
        missed = [str(site) for site in self.missed()]
        return "\n".join(
            [*lines, f"call sites never passed: {missed or 'none'}", f"broken: {self.broken or 'none'}"]
        )

    def missed(self) -> list[Site]:
        """Call sites that no process passed."""
        return [site for site in sites() if not any(point.startswith(f"{site} ") for point in self.passed)]

    def not_ended(self) -> list[Site]:
        """Call sites at which no process was killed."""
        return [site for site in sites() if not any(point.startswith(f"{site} ") for point in self.ended)]


class Replays:
    """Replays of one scenario on one server."""

    def __init__(
        self,
        zygotes: Zygotes,
        server: Postgres,
        template: str,
        scenario: Scenario,
        broker: str | None,
        tally: Tally,
    ) -> None:
        self._zygotes, self._server, self._template = zygotes, server, template
        self._scenario, self._broker, self._tally = scenario, broker, tally

    async def record(self) -> dict[str, int]:
        """The points that the scenario passes, in order, when nothing goes wrong, and how often."""
        async with self._database() as database:
            first_run = await self._job(database)
            second_run = await self._job(database, first=False)
        assert not first_run.get("broken"), first_run["broken"]
        assert not second_run.get("broken"), second_run["broken"]
        passed: dict[str, int] = first_run["reached"]
        for point, count in passed.items():
            self._tally.passed[point] = self._tally.passed.get(point, 0) + count
        return passed

    async def each(self, points: Iterable[str], uncut: Sequence[str] = ()) -> None:
        """Kill at each of these; and lose the connection at those that have sent a commit, but at the `uncut`. On a broker
        one after the other: they share its queues."""
        remaining = deque(points)

        async def lane() -> None:
            while remaining:
                point = remaining.popleft()
                await self.kill(point)
                if "(commit) committed" in point and not any(part in point for part in uncut):
                    await self.cut(point)

        await asyncio.gather(*(lane() for _ in range(1 if self._broker else LANES)))

    async def kill(self, point: str, hit: int = 1) -> None:
        async with self._database() as database:
            answer = await self._job(database, point=point, hit=hit)
            if not answer["killed"]:
                self._tally.not_reached.append(f"{self._scenario.name}: {point}")
            second = await self._job(database, first=False)
        self._note(self._tally.ended if answer["killed"] else {}, point, second)

    async def cut(self, point: str, hit: int = 1) -> None:
        """The connection is lost once COMMIT was sent: the process lives on, and does not know."""
        async with self._database() as database:
            answer = await self._job(database, point=point, hit=hit, how="cut")
            second = await self._job(database, first=False) if answer.get("left") else answer
        self._note(self._tally.cut if answer.get("cut") else {}, point, second)

    def _note(self, where: dict[str, int], point: str, said: dict[str, Any]) -> None:
        where[point] = where.get(point, 0) + 1
        broken = said.get("broken") if "reached" in said else f"it ended without a word: {said}"
        if broken:
            self._tally.broken.append(f"{self._scenario.name}, {point}: {broken}")

    async def _job(self, database: str, **more: Any) -> dict[str, Any]:
        return await self._zygotes.do(Job(self._scenario.name, database, self._broker, **more))

    @asynccontextmanager
    async def _database(self) -> AsyncIterator[str]:
        name = databases.new_name()
        try:
            yield await databases.create(self._server, name, template=self._template)
        finally:
            await databases.drop(self._server, name)


class Zygotes:
    """So many processes that fork those that are killed: while one life waits for something, others go on."""

    def __init__(self, folder: Path, count: int = LANES) -> None:
        folders = [folder / str(number) for number in range(count)]
        self._all = [_Zygote(one) for one in folders]
        self._free = deque(self._all)
        self._room = asyncio.Semaphore(count)

    async def do(self, job: Job) -> dict[str, Any]:
        async with self._room:
            zygote = self._free.popleft()
            try:
                return await asyncio.to_thread(zygote.do, job)
            finally:
                self._free.append(zygote)

    def close(self) -> None:
        for zygote in self._all:
            zygote.close()


class _Zygote:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / "children.log"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.crash.points.zygote", str(folder)],
                cwd=ROOT,
                env={**environment, "PYTHONPATH": python_path()},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def do(self, job: Job) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(job)) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


@asynccontextmanager
async def replays(
    zygotes: Zygotes, server: Postgres, migrated: str, name: str, broker: str | None, tally: Tally
) -> AsyncIterator[Replays]:
    """A scenario, with what it defines applied to the database that its replays begin with."""
    template = databases.new_name()
    url = await databases.create(server, template, template=migrated)
    scenario = SCENARIOS[name]
    try:
        home = Database(Settings(database_url=SecretStr(url)), role="test")
        await register(home.session(), Definitions(scenario.definitions))
        connection = await home.connect()
        await connection.execute(scenario.before)
        await connection.close()
        await home.close()
        yield Replays(zygotes, server, template, scenario, broker, tally)
    finally:
        await databases.drop(server, template)
