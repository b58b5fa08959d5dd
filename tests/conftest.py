"""Servers for every test: one PostgreSQL and one RabbitMQ a run, a fresh database and vhost a test.

Nothing starts before a test asks for it, and everything ends with the run (see `servers/choose.py`
for where the servers come from, and `servers/reaper.py` for runs that are killed).
"""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, settings
from pydantic import SecretStr

from penstock.settings import Settings
from penstock.store.schema import migrate
from penstock.store.session import type_cache
from tests import proofs
from tests.crash.points.replay import Zygotes
from tests.failures_at_once import FailuresAtOnce
from tests.flows.installation import Installation
from tests.interleavings import explore
from tests.servers import brokers, choose, databases, one_for_all
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import Postgres
from tests.servers.rabbitmq import RabbitMQ
from tests.servers.replicated import ReplicatedPostgres
from tests.servers.reused import Reused

# How fast a busy machine makes up examples says nothing about the code.
settings.register_profile("penstock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("penstock")

# Databases of a run are copies of one another: types have the same numbers in all.
type_cache.place = lambda connection: connection._addr

WAITING = {
    "crash",
    "interleavings",
    "servers",
    "test_losses.py",
    "test_waking.py",
    "test_polls.py",
    "test_silence.py",
}
"""Folders and files that take a minute with a few tests, and wait for servers much of it."""

FEW = {
    "test_backend.py",
    "test_blocked.py",
    "test_channel_refusals.py",
    "test_chart.py",
    "test_client_roles.py",
    "test_completion.py",
    "test_costs.py",
    "test_demo.py",
    "test_docs_testing.py",
    "test_doctor.py",
    "test_failures_at_once.py",
    "test_from_inside.py",
    "test_from_outside.py",
    "test_hostile_network.py",
    "test_hostile_packs.py",
    "test_http_client.py",
    "test_kill.py",
    "test_matrix.py",
    "test_pages.py",
    "test_placement.py",
    "test_plain_executions.py",
    "test_programs_of_one_attempt.py",
    "test_programs_of_several_attempts.py",
    "test_reference.py",
    "test_rules.py",
    "test_secrets_in_outputs.py",
    "test_terminal_escapes.py",
    "test_unknown_names.py",
}
"""Files that take as long, with tests that are few."""


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with the mark `either_transport` on one of the transports, and about as many on each of them.
    PENSTOCK_TEST_TRANSPORTS=both runs all on both, as `make mutate` does."""
    test = metafunc.definition
    if "transport" not in metafunc.fixturenames or os.environ.get("PENSTOCK_TEST_TRANSPORTS") == "both":
        return
    if test.get_closest_marker("either_transport") is not None:
        test.add_marker(pytest.mark.parametrize("transport", [proofs.transport_of(test.name)]))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files of which this run needs no test. Importing all of them takes each process ten seconds."""
    return proofs.is_left_out(collection_path, config.rootpath) or None


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Show failures as they come, in the process that writes to the terminal. Processes that share the tests begin at
    different folders, so that each compiles modules that the others then find compiled."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(FailuresAtOnce(terminal), "failures-at-once")
    if "PYTEST_XDIST_WORKER" in os.environ and config.args == config.getini("testpaths"):
        left_out = config.getini("norecursedirs")
        folders = sorted(
            str(path)
            for path in Path(__file__).parent.iterdir()
            if (path.is_dir() and not path.name.startswith("_") and path.name not in left_out)
            or path.match("test_*.py")
        )
        number, count = (
            int(os.environ[f"PYTEST_XDIST_WORKER{name}"].lstrip("gw")) for name in ("", "_COUNT")
        )
        start = len(folders) * number // count
        config.args[:] = folders[start:] + folders[:start]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest files first, so that the processes that share them end together; and in turn one that waits and two that
    work, so that none of them waits for the others at one time and for the machine at another."""
    proofs.select(config, items)
    size = Counter(item.path for item in items)
    place = {}
    for waits in (True, False):
        files = [path for path in size if WAITING.isdisjoint(path.parts) is not waits]
        for number, path in enumerate(
            sorted(files, key=lambda path: (path.name not in FEW, -size[path], path))
        ):
            place[path] = 3 * number if waits else 3 * (number // 2) + 1 + number % 2
    items.sort(key=lambda item: place[item.path])


def pytest_collection_finish() -> None:
    """Half a million objects of all modules and tests live to the end: looking through them took a tenth of all time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(scope="session", autouse=True)
def loggers_not_kept() -> None:
    """A service that a test starts in this process sets up logging for as long as the process lives: loggers would go on
    writing into what was captured for that test."""
    configure = structlog.configure
    structlog.configure = lambda *given, **options: configure(
        *given, **{**options, "cache_logger_on_first_use": False}
    )


@pytest.fixture(autouse=True)
def logs_apart() -> Iterator[None]:
    """Keep the logs of services of this process out of the output of commands in a test."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.__stderr__))
    yield
    structlog.reset_defaults()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.__stderr__))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """The run's PostgreSQL. Do not stop it: other tests use it too."""
    server = choose.shared_postgres()
    yield server
    server.close()


@pytest.fixture(scope="session")
def rabbitmq_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMQ]:
    """The run's RabbitMQ. Do not stop it: other tests use it too."""
    mine = tmp_path_factory.getbasetemp()
    with one_for_all.rabbitmq(mine.parent if "PYTEST_XDIST_WORKER" in os.environ else mine) as server:
        yield server


@pytest.fixture(scope="session")
async def template(postgres_server: Postgres) -> AsyncIterator[str]:
    """The name of the migrated database that every test's own is copied from. No session may stay connected to it.
    PENSTOCK_TEST_TEMPLATE names one that is there already, in the server of PENSTOCK_TEST_DATABASE_URL."""
    if given := os.environ.get("PENSTOCK_TEST_TEMPLATE"):
        yield given
        return
    name = databases.new_name()
    async with databases.kept_connection(postgres_server):
        await migrate.upgrade(Settings(database_url=SecretStr(await databases.create(postgres_server, name))))
        await databases.give_roles(postgres_server, name)
        yield name
        await databases.drop_roles(postgres_server, name)
        await databases.drop(postgres_server, name)


@pytest.fixture(scope="session")
async def gated(postgres_server: Postgres, template: str) -> AsyncIterator[str]:
    """Return the template with gates in its functions, for the races that are stepped through."""
    async with explore.gated(postgres_server, template) as name:
        yield name


@pytest.fixture(scope="session")
async def reused(postgres_server: Postgres, template: str) -> AsyncIterator[Reused]:
    """The databases that the tests of this process use one after the other."""
    reused = Reused(postgres_server, template)
    yield reused
    await reused.close()


@pytest.fixture
async def database(postgres_server: Postgres, template: str, reused: Reused) -> AsyncIterator[str]:
    """The address of a database like a fresh copy of the template."""
    if "PENSTOCK_TEST_TEMPLATE" in os.environ:
        name = databases.new_name()
        yield await databases.create(postgres_server, name, template=template)
        await databases.drop(postgres_server, name)
        return
    name = await reused.take()
    address = postgres_server.dsn(name)
    databases.has_roles(address, template)
    yield address
    await reused.give_back(name)


@pytest.fixture
async def empty_database(postgres_server: Postgres) -> AsyncIterator[str]:
    """The address of a database with nothing in it."""
    name = databases.new_name()
    yield await databases.create(postgres_server, name)
    await databases.drop(postgres_server, name)


@pytest.fixture
def vhost(rabbitmq_server: RabbitMQ) -> Iterator[str]:
    """The address of a fresh vhost."""
    name = databases.new_name()
    address = rabbitmq_server.add_vhost(name)
    brokers.give_users(rabbitmq_server, address)
    yield address
    brokers.drop_users(rabbitmq_server, address)
    rabbitmq_server.drop_vhost(name)


@pytest.fixture(scope="session")
def pgbouncer(postgres_server: Postgres) -> Iterator[PgBouncer]:
    """PgBouncer in transaction mode before the run's PostgreSQL: `pgbouncer.dsn(name of a database)`."""
    pooler = choose.private_pgbouncer(postgres_server.dsn())
    yield pooler
    pooler.close()


@pytest.fixture
def private_postgres() -> Iterator[Callable[[], Postgres]]:
    """Makes a PostgreSQL that belongs to one test, to be stopped and killed at will."""
    servers: list[Postgres] = []

    def make() -> Postgres:
        servers.append(choose.private_postgres())
        return servers[-1]

    yield make
    for server in servers:
        server.close()


@pytest.fixture
def pair() -> Iterator[ReplicatedPostgres]:
    """A PostgreSQL with a synchronous standby that belong to one test."""
    server = ReplicatedPostgres()
    yield server
    server.close()


@pytest.fixture
def private_rabbitmq() -> Iterator[Callable[[], RabbitMQ]]:
    """Makes a RabbitMQ that belongs to one test, to be stopped, killed and wiped at will."""
    servers: list[RabbitMQ] = []

    def make() -> RabbitMQ:
        servers.append(choose.private_rabbitmq())
        return servers[-1]

    yield make
    for server in servers:
        server.close()


@pytest.fixture(params=proofs.TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def broker(transport: str, request: pytest.FixtureRequest) -> str | None:
    url: str | None = request.getfixturevalue("vhost") if transport == "rabbitmq" else None
    return url


@pytest.fixture
async def house(database: str, broker: str | None) -> AsyncIterator[Installation]:
    """An installation with nothing running in it yet."""
    async with Installation(database, broker) as installation:
        yield installation


@pytest.fixture
def make_house(database: str, broker: str | None) -> Callable[..., Installation]:
    """Makes an installation with settings of one's own."""

    def make(**settings: Any) -> Installation:
        return Installation(database, broker, **settings)

    return make


@pytest.fixture(scope="session")
def zygotes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygotes]:
    """Fork processes that are to be killed at a point of theirs."""
    zygote_pool = Zygotes(tmp_path_factory.mktemp("points"))
    yield zygote_pool
    zygote_pool.close()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process of several that share the tests hands in which servers it used."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["chosen"] = choose.chosen


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    choose.chosen.extend(getattr(node, "workeroutput", {}).get("chosen", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in dict.fromkeys(choose.chosen):
        terminalreporter.write_line(f"used {line}")
