"""A plugin of pytest that writes down which functions of the database each test calls, and how long the test takes.

PostgreSQL counts calls (`track_functions`); what a database counted is read before it is dropped, and belongs to every test
that ran while it was there. Only databases that are copies of the migrated one count: no other can be given a mutant.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import asyncpg
import pytest

from tests.servers import databases
from tests.servers.postgres import Postgres

LEAVE = "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = $1"
CALLED = "select funcname from pg_stat_user_functions where calls > 0"
FOREIGN = {"rabbitmq_server", "private_postgres", "private_rabbitmq", "pgbouncer", "empty_database"}
"""Fixtures of tests that are left out: they need servers that no mutant is in, or are dear and call nothing else."""


class Calls:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._alive: dict[str, set[str]] = {}
        self._called: dict[str, set[str]] = {}
        self._open: dict[str, float] = {}
        self._create, self._drop = databases.create, databases.drop
        databases.create, databases.drop = self.create, self.drop
        self._test = ""

    async def create(self, server: Postgres, name: str, *, template: str = "template1") -> str:
        if template != "template1":
            self._alive[name] = {self._test}
        return await self._create(server, name, template=template)

    async def drop(self, server: Postgres, name: str) -> None:
        tests = self._alive.pop(name, set())
        if tests:
            connection = await asyncpg.connect(server.dsn())
            await connection.fetch(LEAVE, name)
            await connection.close()
            connection = await asyncpg.connect(server.dsn(name))
            called = {row["funcname"] for row in await connection.fetch(CALLED)}
            await connection.close()
            for test in tests:
                self._called.setdefault(test, set()).update(called)
        await self._drop(server, name)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._test = nodeid
        for tests in self._alive.values():
            tests.add(nodeid)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [
            item
            for item in items
            if FOREIGN.isdisjoint(getattr(item, "fixturenames", ())) and "[rabbitmq" not in item.nodeid
        ]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._open[report.nodeid] = self._open.get(report.nodeid, 0.0) + report.duration
        if not report.passed:
            self._open[report.nodeid] = float("inf")

    def pytest_sessionfinish(self) -> None:
        with self._file.open("a") as file:
            for test, called in self._called.items():
                if test and self._open.get(test, float("inf")) < 60:
                    line = {"test": test, "seconds": round(self._open[test], 2), "calls": sorted(called)}
                    file.write(json.dumps(line) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.register(Calls(Path(os.environ["PENSTOCK_TEST_CALLS"])))
