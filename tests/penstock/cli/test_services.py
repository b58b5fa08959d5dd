"""Ports of services: one that is taken is named, and two services of one process do not want the same one."""

from __future__ import annotations

import os
import re
import socket
import sys
import urllib.error
import urllib.request
from asyncio import create_subprocess_exec, sleep, timeout, to_thread
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.client.client import Client
from penstock.client.local_installation import LocalInstallation
from penstock.errors import ConfigurationError
from penstock.service.health import serve_health
from penstock.service.ports import listening
from penstock.settings import Settings
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock

MODULE = """
from penstock import action

@action(pack="ports")
def one() -> int:
    return 1
"""


@pytest.fixture
def taken() -> Iterator[int]:
    """Return a port with a listener."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield int(other.getsockname()[1])


async def test_a_port_that_is_taken_is_named_with_the_setting(house: Installation, taken: int) -> None:
    parts = await house.parts()
    parts.settings = house.settings(host="127.0.0.1", port=taken)
    with pytest.raises(ConfigurationError, match=str(taken)) as caught:
        await serve_health(parts)
    assert "PENSTOCK_PORT" in str(caught.value.hint)


async def status(address: str) -> int:
    """Return the status once a service listens there: work may be done before all services of a process do."""
    async with timeout(30):
        while True:
            try:
                return int((await to_thread(urllib.request.urlopen, address)).status)
            except urllib.error.URLError:
                await sleep(0.05)


async def test_dev_with_a_port_listens_on_it_and_runs_all_services(
    named: str, tmp_path: Path, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    monkeypatch.setenv("PENSTOCK_PORT", str(port))
    monkeypatch.setenv("PENSTOCK_HOST", "127.0.0.1")
    monkeypatch.setenv("PENSTOCK_GRACE", "1")
    (tmp_path / "ports_of_dev.py").write_text(MODULE)
    async with LocalInstallation.started(tmp_path, modules=[str(tmp_path / "ports_of_dev.py")]) as local:
        listed_kinds = {row["kind"] for row in (await penstock("workers", "list", "--json")).documents}
        assert {"executor", "worker"} <= listed_kinds
        said = await penstock("run", "ports.one", "--wait", "--timeout", "30", "--json")
        assert said.code == 0, said
        assert await status(f"http://127.0.0.1:{port}/live") == 200
        found = re.search(r"(http://\S+:\d+)", local.address)
        assert found is not None
        listed = await to_thread(urllib.request.urlopen, f"{found[1]}/api/v1/actions")
        assert b"ports.one" in listed.read()


CALLED_BACK = """
from pathlib import Path
from penstock import action, current, later

@action(pack="ports")
async def build(path: str):
    Path(path).write_text(await current().callback())
    return later()
"""


@pytest.mark.parametrize("restarted", [False, True], ids=["first_worker", "after_a_reload"])
async def test_worker_of_dev_knows_the_api_beside_it(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restarted: bool
) -> None:
    monkeypatch.delenv("PENSTOCK_API_ADDRESS", raising=False)
    module = tmp_path / f"called_back_{restarted}.py"
    module.write_text(CALLED_BACK)
    path = tmp_path / "address"
    async with LocalInstallation.started(tmp_path, modules=[str(module)]) as local:
        if restarted:
            await local.take_over(local.definitions)
        async with Client.connect(local.settings) as client, timeout(60):
            id = await client.start("ports.build", {"path": str(path)})
            while not path.exists() or not path.read_text():
                await sleep(0.05)
            address = path.read_text()
            assert address.startswith(f"{local.address}/callbacks/")
            body = urllib.request.Request(
                address, b'{"result": 5}', {"Content-Type": "application/json"}, method="POST"
            )
            await to_thread(urllib.request.urlopen, body)
            assert await client.result(id) == 5


async def test_dev_says_which_port_was_taken(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = Settings.model_fields["api_port"].default

    def as_if_taken(host: str, port: int) -> socket.socket:  # other tests may have it, or let it go
        if port == wanted:
            raise ConfigurationError("somebody listens there")
        return listening(host, port)

    monkeypatch.setattr("penstock.client.local_installation.listening", as_if_taken)
    async with LocalInstallation.started(tmp_path) as local:
        assert local.taken_port == wanted
        assert not local.address.endswith(f":{wanted}")


async def test_dev_refuses_a_named_port_that_is_taken(named: str, tmp_path: Path, taken: int) -> None:
    said = await penstock("dev", "--port", taken, "--home", tmp_path)
    assert (said.code, str(taken) in said.err) == (1, True), said


async def test_lines_of_dev_are_for_people(named: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PENSTOCK_LOG_LEVEL": "info", "PENSTOCK_GRACE": "1"}
    command = [sys.executable, "-m", "penstock", "dev", "--port", "0", "--home", str(tmp_path)]
    dev = await create_subprocess_exec(*command, cwd=tmp_path, env=environment, stderr=PIPE)
    assert dev.stderr is not None
    lines: list[str] = []
    try:
        async with timeout(60):
            while not any("executor" in line and "service" in line for line in lines):
                lines.append((await dev.stderr.readline()).decode())
                assert lines[-1], lines
    finally:
        dev.terminate()
        await dev.communicate()
    assert not [line for line in lines if line.startswith("{")]


async def test_a_worker_of_no_route_is_told_so(named: str, tmp_path: Path) -> None:
    (tmp_path / "ports_of_worker.py").write_text(MODULE)
    said = await penstock("worker", "--module", tmp_path / "ports_of_worker.py", "--routes", "")
    assert said.code == 1
    assert "names no route" in said.err
    assert "should not have happened" not in said.err
