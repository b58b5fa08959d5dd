"""The services of docker-compose.yml and of the units of systemd, started here: they come up in their order, run work, and
drain."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shlex
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from pydantic import SecretStr

from penstock.client.client import Client
from penstock.settings import Settings
from tests.deploy.native import Native
from tests.flows.reading import get
from tests.servers.process import free_port

ROOT = Path(__file__).parents[2]
SERVICES: dict[str, dict[str, Any]] = {
    name: service
    for name, service in yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"].items()
    if "profiles" not in service  # which Compose starts only when asked
}
PAGE = (ROOT / "docs/deploying.md").read_text()
TILL = """
from penstock import Pack, action

pack = Pack("till")

@action
async def charge(order: int) -> str:
    return f"charged order {order}"
"""

LIVE = """
select array_agg(kind order by kind) as kinds from process where state = 'active' having count(*) = $1
"""


class Project:
    """`docker compose up`: what of it Compose, the images and their network would do is done here."""

    def __init__(self, native: Native, database: str, broker: str) -> None:
        self._native = native
        self._servers = {"postgres:5432": database, "rabbitmq:5672": broker}
        self._given = {"PENSTOCK_MODULES": "actions/till.py"}
        self.api_port = free_port()
        self.running: dict[subprocess.Popen[bytes], float] = {}

    async def up(self) -> None:
        started: set[str] = {"postgres", "rabbitmq"}
        while missing := set(SERVICES) - started:
            name = next(
                service for service in sorted(missing) if set(SERVICES[service]["depends_on"]) <= started
            )
            await asyncio.gather(*(self._start(name) for _ in range(self._replicas(name))))
            started.add(name)

    def _replicas(self, name: str) -> int:
        return int(SERVICES[name].get("deploy", {}).get("replicas", 1))

    async def _start(self, name: str) -> None:
        service = SERVICES[name]
        stated = {key: value for key, value in service["environment"].items() if value is not None}
        environment = {key: self._filled(value) for key, value in stated.items()}
        environment |= {key: str(free_port()) for key in ("PENSTOCK_PORT",) if key in environment}
        if "PENSTOCK_API_HOST" in environment:
            environment |= {"PENSTOCK_API_HOST": "127.0.0.1", "PENSTOCK_API_PORT": str(self.api_port)}
        if service["restart"] == "no":
            await self._native.run(*service["command"], environment=environment)
            return
        process = self._native.start(service["command"], environment)
        self.running[process] = float(service["stop_grace_period"].removesuffix("s"))
        kind, *check = service["healthcheck"]["test"]
        assert kind == "CMD"
        await self._native.healthy(
            [word.replace(":8080/", f":{environment['PENSTOCK_PORT']}/") for word in check]
        )

    def _filled(self, value: str) -> str:
        """Return the text with the variables of the caller, and the addresses of the servers of this test."""
        for host, address in self._servers.items():
            if f"@{host}/" in value:
                return address
        return re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: self._given.get(found[1], found[2]), value)


def addresses(database: str, broker: str) -> dict[str, str]:
    return {"PENSTOCK_DATABASE_URL": database, "PENSTOCK_BROKER_URL": broker}


def told(variables: str) -> dict[str, str]:
    """An EnvironmentFile."""
    return dict(line.split("=", 1) for line in variables.splitlines() if line and line[0] != "#")


class Machine:
    """`systemctl enable --now penstock-migrate penstock@executor penstock@worker penstock@api`, with the files of the page."""

    def __init__(self, native: Native, database: str, broker: str) -> None:
        self._native, self.api_port = native, free_port()
        sections = re.findall(r"^    # (/etc/penstock/\w+\.env)\n((?:    PENSTOCK_.*\n)+)", PAGE, re.M)
        self._files = {path: told(text.replace("    ", "")) for path, text in sections}
        own_addresses = addresses(database, broker) | {"PENSTOCK_API_PORT": str(self.api_port)}
        for values in self._files.values():  # a service names the database with a role of its own
            values |= {name: value for name, value in own_addresses.items() if name in values}
        self._files["/etc/penstock/penstock.env"] |= own_addresses
        self.running: dict[subprocess.Popen[bytes], float] = {}

    async def boot(self) -> None:
        migrate, service = unit("penstock-migrate.service"), unit("penstock@.service")
        assert migrate["Type"] == ["oneshot"]
        assert "penstock-migrate.service" in service["After"][0].split()
        await self._native.run(*self._words(migrate, ""), environment=self._variables(migrate, ""))
        for instance in ("executor", "worker", "api"):
            process = self._native.start(self._words(service, instance), self._variables(service, instance))
            self.running[process] = float(service["TimeoutStopSec"][0])

    def _words(self, unit: dict[str, list[str]], instance: str) -> list[str]:
        [command] = unit["ExecStart"]
        program, *words = shlex.split(command.replace("%i", instance))
        assert program == "/opt/penstock/bin/penstock"
        assert "/opt/penstock/bin/pip install" in PAGE
        return words

    def _variables(self, unit: dict[str, list[str]], instance: str) -> dict[str, str]:
        """A file with a dash before its name may be missing."""
        values: dict[str, str] = {}
        for path in (path.replace("%i", instance) for path in unit["EnvironmentFile"]):
            values |= self._files.get(path[1:], {}) if path[0] == "-" else self._files[path]
        return values


def unit(name: str) -> dict[str, list[str]]:
    """Return the settings of a unit by key, of all sections."""
    settings: dict[str, list[str]] = {}
    for line in (ROOT / "deploy/systemd" / name).read_text().splitlines():
        key, equals, value = line.partition("=")
        if equals and line[0] != "#":
            settings.setdefault(key, []).append(value)
    return settings


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    actions = tmp_path / "actions"
    actions.mkdir()
    (actions / "till.py").write_text(TILL)
    (tmp_path / "shop.py").write_text(TILL)  # as the page's worker.env calls it
    return tmp_path


async def answered(port: int) -> int:
    """The status of the API's first answer."""
    while True:
        with contextlib.suppress(httpx.ConnectError):
            return (await get(port, "/executions"))[0]
        await asyncio.sleep(0.1)


async def works_and_drains(native: Native, of: Project | Machine, *servers: str) -> dict[str, int]:
    """Executors and workers that run; an execution went through them, the API answers, and each ends by itself in the time that
    it is given."""
    await native.run("apply", "shop.py", environment=addresses(*servers))
    database, broker = map(SecretStr, servers)
    try:
        async with (
            asyncio.timeout(90),
            Client.connect(Settings(database_url=database, broker_url=broker)) as client,
        ):
            while not (rows := await client.session.fetch(LIVE, len(of.running) - 1)):
                await asyncio.sleep(0.1)
            id = await client.start("till.charge", {"order": 7})
            assert await client.result(id) == "charged order 7"
            assert await answered(of.api_port) == 401, "nobody is told anything without a token"
    except TimeoutError as error:
        raise TimeoutError(native.said()) from error
    codes = await asyncio.gather(*(native.stop(service, grace) for service, grace in of.running.items()))
    assert codes == [0] * len(of.running), native.said()
    return dict(Counter(rows[0]["kinds"]))


async def test_compose_brings_up_two_of_each_that_run_work_and_drain(
    empty_database: str, vhost: str, folder: Path
) -> None:
    with Native(folder) as native:
        project = Project(native, empty_database, vhost)
        await project.up()
        kinds = await works_and_drains(native, project, empty_database, vhost)
    assert kinds == {"executor": 2, "worker": 2}


async def test_the_units_start_one_of_each_that_run_work_and_drain(
    empty_database: str, vhost: str, folder: Path
) -> None:
    with Native(folder) as native:
        machine = Machine(native, empty_database, vhost)
        await machine.boot()
        kinds = await works_and_drains(native, machine, empty_database, vhost)
    assert kinds == {"executor": 1, "worker": 1}
