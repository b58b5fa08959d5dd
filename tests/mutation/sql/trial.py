"""One mutant: a copy of the migrated database with it, and the tests that call the function, until one fails."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout

import asyncpg
import pytest

from tests.mutation.postgres import Migrated
from tests.mutation.sql.measure import Measured
from tests.mutation.verdicts import KILLED, REFUSED, SURVIVED, Verdict
from tests.servers import databases
from tests.servers.postgres import NativePostgres, Postgres

OPTIONS = (
    *("-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
)
PATIENCE = 25.0
"""Seconds that a test gets beside four times what it takes: one that waits for what never comes has found the mutant."""
VALID = """
select case when l.lanname = 'sql' then fmgr_sql_validator(p.oid) else plpgsql_validator(p.oid) end
from pg_proc p join pg_language l on l.oid = p.prolang
where p.pronamespace = current_schema()::regnamespace and p.proname = $1
"""
KEPT = "select proconfig from pg_proc where pronamespace = current_schema()::regnamespace and proname = $1"


class Trial:
    """The plugin of pytest for a trial: tests run in the order given, and in a database that has the mutant."""

    def __init__(self, tests: Sequence[Measured]) -> None:
        self._order = {test.test: n for n, test in enumerate(tests)}
        self._seconds = {test.test: test.seconds for test in tests}
        self.databases: set[str] = set()
        self.failed = ""
        self.passed: list[str] = []
        self._create = databases.create
        databases.create = self.create

    async def create(self, server: Postgres, name: str, *, template: str = "template1") -> str:
        self.databases.add(name)
        return await self._create(server, name, template=template)

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Iterator[None]:
        yield
        items.sort(key=lambda item: self._order[item.nodeid])
        for item in items:
            item.add_marker(pytest.mark.timeout(PATIENCE + 4 * self._seconds[item.nodeid]))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid
        elif report.when == "teardown":
            self.passed.append(report.nodeid)


def run(tests: Sequence[Measured], template: str) -> Trial:
    """Run these tests in this process, in databases that are copies of `template`."""
    os.environ["PENSTOCK_TEST_TEMPLATE"] = template
    trial = Trial(tests)
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        code = pytest.main([*OPTIONS, *(test.test for test in tests)], plugins=[trial])
    if code not in (0, 1):
        raise RuntimeError(f"the tests did not run ({code}):\n{output.getvalue()[-3000:]}")
    return trial


async def planted(home: Migrated, name: str, function: str, source: str) -> bool:
    """Make a copy of the migrated database with this function in it. False where PostgreSQL refuses the function."""
    connection = await asyncpg.connect(await databases.create(home.server, name, template=home.database))
    try:
        settings = await connection.fetchval(KEPT, function) or []
        await connection.execute(source)
        await connection.fetch(VALID, function)
        for setting in settings:
            await connection.execute(f"alter function {function} set {setting.replace('=', ' = ', 1)}")
    except asyncpg.PostgresError:
        return False
    finally:
        await connection.close()
    return True


def tried(home: Migrated, function: str, source: str, tests: Sequence[Measured]) -> Verdict:
    """Return the verdict on a mutant."""
    name = databases.new_name()
    try:
        if not asyncio.run(planted(home, name, function, source)):
            return Verdict(REFUSED)
        trial = run(tests, name)
        if not trial.failed:
            return Verdict(SURVIVED)
        if makes_no_sense(home.server, trial.databases):
            return Verdict(REFUSED)
        return Verdict(KILLED, trial.failed)
    finally:
        asyncio.run(databases.drop(home.server, name))


def makes_no_sense(server: NativePostgres, used: set[str]) -> bool:
    """Return true if statements in these databases named missing objects, or types that do not fit (class 42 of errors).
    PostgreSQL sees that only where a statement runs, and any test would."""
    for line in server.log_lines():
        database, _, message = line.partition(" ")
        if database in used and message.startswith("42") and "ERROR" in message:
            return True
    return False
