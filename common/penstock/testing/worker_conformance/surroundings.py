"""The surroundings of a worker under test: an installation, two gateways of their own, and a proxy before them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx

from penstock.client.client import Client
from penstock.client.local_installation import LocalInstallation
from penstock.language.moves.processes import DEAD
from penstock.operate import roles
from penstock.operate.access import create_token
from penstock.service.ports import listening
from penstock.store.executions import executions, log_lines, past_attempts
from penstock.store.executions.executions import Execution
from penstock.store.processes import processes
from penstock.testing.worker_conformance.database_link import DatabaseLink
from penstock.testing.worker_conformance.faulty_proxy import FaultyProxy

ROUTE = "conformance"
PACK = f"""
name: conformance
actions:
  play:
    executor: remote
    route: {ROUTE}
    timeout: 60
    max_recoveries: 20
    retry: {{max_attempts: 3, initial_delay: 0.1}}
    parameters:
      type: object
      properties:
        steps: {{type: array}}
        secret: {{type: string, secret: true}}
  once:
    executor: remote
    route: {ROUTE}
    timeout: 60
    on_worker_loss: fail
    parameters: {{type: object, properties: {{steps: {{type: array}}}}}}
  brief:
    executor: remote
    route: {ROUTE}
    timeout: 1
    parameters: {{type: object, properties: {{steps: {{type: array}}}}}}
"""
CHAIN = """
workflow: conformance.chain
parameters: {n: {type: integer}}
tasks:
  first: {action: conformance.play, input: {steps: [{return: "{{ parameters.n }}"}]}}
  each: {action: conformance.play, with_items: "{{ [1, 2, 3, 4, 5] }}", input: {steps: [{return: "{{ item }}"}]}, needs: [first]}
  last: {action: conformance.play, input: {steps: [{return: "{{ tasks.first.result + 1 }}"}]}, needs: [each]}
output: {n: "{{ tasks.last.result }}"}
"""
QUICK: Mapping[str, Any] = {
    "heartbeat_interval": 2.0,
    "stale_threshold": 6.0,
    "sweep_interval": 0.5,
    "poll_interval": 1.0,
    "relay_interval": 0.5,
    "relay_age": 0.5,
    "restage_age": 2.0,
    "grace": 5.0,
    "log_level": "error",
    "api_port": 0,
    "api_access": "token",
}
"""Settings of the installation. A lost worker is noticed after seven seconds."""
STARTS_S = 120.0
"""Seconds for a process to start."""
LINES_S = 20.0
"""Seconds to wait for lines of an attempt that has ended."""
GONE_S = 60.0
"""Seconds after which the installation knows at the latest that a worker has gone."""
ROLE = "conformance_worker"
"""The PostgreSQL role of a worker that has a session with the database."""
SLOTS = 4
"""The slots that a worker under test has to offer."""


class WorkerProcess:
    """A process of the worker under test."""

    def __init__(self, process: asyncio.subprocess.Process, name: str) -> None:
        self._process = process
        self.name = name

    @property
    def is_running(self) -> bool:
        return self._process.returncode is None

    def freeze(self) -> None:
        """Stop the process without ending it, as a machine that stands still."""
        self._send(signal.SIGSTOP)

    def thaw(self) -> None:
        self._send(signal.SIGCONT)

    async def kill(self) -> None:
        self._send(signal.SIGKILL)
        await self._process.wait()

    async def terminate(self, seconds: float) -> int | None:
        """Ask the process to stop. Return its exit code, or None if it still runs after `seconds`."""
        self._send(signal.SIGTERM)
        return await self.exit_code(seconds)

    async def exit_code(self, seconds: float) -> int | None:
        """Wait at most `seconds` for the end of the process. Return its exit code, or None."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await self._process.wait()
        return None

    def _send(self, number: signal.Signals) -> None:
        """Signal the process and its children, which have a process group of their own."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


class Gateways:
    """Processes of `penstock gateway`, which cases kill."""

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        self._environment = environment
        self._log = log
        self._processes: dict[int, asyncio.subprocess.Process] = {}

    async def start(self, port: int = 0) -> int:
        """Start a gateway on a port, or a free one. Return the port once it answers."""
        if not port:
            with listening("127.0.0.1", 0) as free:
                port = free.getsockname()[1]
        with self._log.open("ab") as log:
            self._processes[port] = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "penstock", "gateway", "--port", str(port)),
                env=dict(self._environment),
                stdout=log,
                stderr=log,
            )
        async with asyncio.timeout(STARTS_S), httpx.AsyncClient() as client:
            while True:
                with contextlib.suppress(httpx.TransportError):
                    await client.get(f"http://127.0.0.1:{port}/api/v1/work/hello")
                    return port
                await asyncio.sleep(0.1)

    async def kill(self, port: int) -> None:
        """Kill the gateway of a port without notice."""
        process = self._processes.pop(port)
        process.kill()
        await process.wait()

    async def close(self) -> None:
        for port in list(self._processes):
            await self.kill(port)


class HandedBack(Exception):
    """The worker has handed an attempt back before it had begun, as one without a free slot may. The case is played again."""


class Surroundings:
    """The installation and the worker of a case. A worker reaches the installation over `network`: a proxy before gateways, or a
    link to the database. `variables` is the environment that tells it where that is."""

    def __init__(
        self,
        client: Client,
        proxy: FaultyProxy,
        network: FaultyProxy | DatabaseLink,
        gateways: Gateways,
        ports: Sequence[int],
        token: str,
        variables: Mapping[str, str],
        command: Sequence[str],
        log: Path,
    ) -> None:
        self.client = client
        self.session = client.session
        self.proxy = proxy
        self.network = network
        self.gateways = gateways
        self.ports = list(ports)
        self.token = token
        self.workers: list[WorkerProcess] = []
        self._variables = variables
        self._command = command
        self._log = log
        self._count = 0

    @property
    def is_direct(self) -> bool:
        """Return whether the worker has a session with the database."""
        return self.network is not self.proxy

    @property
    def worker(self) -> WorkerProcess:
        """Return the worker that was started last."""
        return self.workers[-1]

    async def start_worker(self, name: str | None = None) -> WorkerProcess:
        """Start a worker. Return once it is registered, and has the answer to its hello."""
        self._count += 1
        name = name or f"worker-{self._count}"
        earlier = self._answered_hellos()
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")},
            **self._variables,
            "PENSTOCK_ROUTES": ROUTE,
            "PENSTOCK_NAME": name,
            "PENSTOCK_SLOTS": str(SLOTS),
            "PENSTOCK_GRACE": "2",
        }
        with self._log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *self._command, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        worker = WorkerProcess(process, name)
        self.workers.append(worker)
        async with asyncio.timeout(STARTS_S):
            while not await self.is_registered(name) or (
                not self.is_direct and self._answered_hellos() <= earlier
            ):
                assert worker.is_running, f"the worker ended before it said hello (its output: {self._log})"
                await asyncio.sleep(0.05)
        return worker

    def _answered_hellos(self) -> int:
        return len([exchange for exchange in self.proxy.of("hello") if exchange.status == 201])

    async def is_registered(self, name: str) -> bool:
        """Return whether the installation takes a worker of this name for alive."""
        workers = await processes.all(self.session, "worker")
        return any(worker.name == name and worker.state != DEAD for worker in workers)

    async def only_worker(self) -> WorkerProcess:
        """Have one worker that runs, and no other."""
        alive = [worker for worker in self.workers if worker.is_running]
        await self.end(*alive[:-1])
        self.workers = alive[-1:]
        return self.workers[-1] if self.workers else await self.start_worker()

    async def end_workers(self) -> None:
        """Kill all workers, and wait until the installation knows that they are gone."""
        await self.end(*self.workers)

    async def end(self, *workers: WorkerProcess) -> None:
        """Kill workers, and wait until the installation knows that they are gone. Until then a take of a killed worker may still
        wait at a gateway, and be given an execution of the next case."""
        for worker in workers:
            await worker.kill()
        async with asyncio.timeout(GONE_S):
            for worker in workers:
                while await self.is_registered(worker.name):
                    await asyncio.sleep(0.1)
        self.workers = [worker for worker in self.workers if worker not in workers]

    async def start(self, *steps: Any, action: str = "conformance.play", **options: Any) -> UUID:
        """Start an execution with attempts that play these steps."""
        secret = options.pop("secret", None)
        parameters = {"steps": list(steps), **({} if secret is None else {"secret": secret})}
        return await self.client.start(action, parameters, **options)

    async def play(self, *steps: Any, **options: Any) -> Any:
        """Return the result of an execution that plays these steps."""
        return await self.client.result(await self.start(*steps, **options), timeout=40)

    async def status(self, id: UUID) -> str:
        [execution] = await executions.find(self.session, [id])
        return execution.status

    async def until_ended(self, id: UUID, seconds: float = 40) -> Execution:
        """Wait until an execution has ended. Return its row."""
        async with asyncio.timeout(seconds):
            while True:
                [execution] = await executions.find(self.session, [id])
                if execution.finished_at is not None:
                    return execution
                await asyncio.sleep(0.05)

    async def until_running(self, id: UUID, attempt: int = 1, seconds: float = 30) -> None:
        """Wait until an attempt of an execution runs, and its worker has said so. Raises HandedBack if a later one runs."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    lines = await log_lines.after_each(self.session, {id: (0, 0)})
                    numbers = [line.attempt for _, line in lines if line.line == "begun"]
                    if attempt in numbers:
                        return
                    if any(number > attempt for number in numbers):
                        raise HandedBack(f"attempt {attempt} was handed back before it had begun")
                    await asyncio.sleep(0.05)
        outcomes = await self.outcomes(id)
        raise AssertionError(
            f"attempt {attempt} has logged no `begun` within {seconds:.0f} s; the attempts: {outcomes}"
        )

    async def lines(self, id: UUID, stream: str = "log", *, count: int = 0) -> list[str]:
        """Return the lines that an execution has logged. Wait for `count` of them: a worker with a session with the database
        stores lines beside the end of their attempt."""
        until = time.monotonic() + LINES_S
        while True:
            rows = await log_lines.after_each(self.session, {id: (0, 0)})
            lines = [line.line for _, line in rows if line.stream == stream]
            if len(lines) >= count or time.monotonic() > until:
                return lines
            await asyncio.sleep(0.05)

    async def outcomes(self, id: UUID) -> list[str]:
        """Return the outcome of each attempt of an execution."""
        [execution] = await executions.find(self.session, [id])
        return [attempt.outcome for attempt in await past_attempts.attempts(self.session, execution)]


@asynccontextmanager
async def surroundings(
    command: Sequence[str], broker: str | None = None, *, direct: bool = False
) -> AsyncIterator[Surroundings]:
    """Start an installation with an embedded PostgreSQL, two gateways and a proxy. With `direct` start a link to the database
    instead of the gateways. End all of them, and the workers, with the block. RabbitMQ carries the messages if `broker` is its
    address, else PostgreSQL."""
    # The queues of a run stay on the broker, so that each run has its own.
    of_broker = {} if broker is None else {"broker_url": broker, "prefix": f"conformance-{os.getpid()}"}
    with tempfile.TemporaryDirectory(prefix="penstock-conformance-") as folder:
        home = Path(folder)
        pack = home / "pack"
        (pack / "workflows").mkdir(parents=True)
        (pack / "pack.yaml").write_text(PACK)
        (pack / "workflows" / "chain.yaml").write_text(CHAIN)
        started = LocalInstallation.started(
            home / "data",
            modules=[str(pack)],
            overrides={**QUICK, **of_broker},
            apart=True,
        )
        async with started as local, Client.connect(local.settings) as client:
            assert local.settings.database_url is not None
            settings = {
                f"PENSTOCK_{name.upper()}": str(value) for name, value in {**QUICK, **of_broker}.items()
            }
            environment = {
                **{name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")},
                **settings,
                "PENSTOCK_DATABASE_URL": local.settings.database_url.get_secret_value(),
            }
            log = Path(tempfile.gettempdir()) / f"penstock-conformance-{os.getpid()}.log"
            gateways = Gateways(environment, log)
            ports: Sequence[int] = ()
            token = ""
            network: FaultyProxy | DatabaseLink
            if direct:
                proxy = FaultyProxy(())
                [role] = await roles.apply(client.session, local.settings, {"worker": ROLE})
                assert role.address is not None, "the database is new"
                network = DatabaseLink(role.address)
                variables = {**settings, "PENSTOCK_DATABASE_URL": await network.open()}
            else:
                _, token = await create_token(client.session, "conformance", ["work"], by="conformance")
                ports = await asyncio.gather(gateways.start(), gateways.start())
                network = proxy = FaultyProxy([f"http://127.0.0.1:{port}" for port in ports])
                variables = {"PENSTOCK_SERVER": await proxy.open(), "PENSTOCK_TOKEN": token}
            house = Surroundings(client, proxy, network, gateways, ports, token, variables, command, log)
            try:
                yield house
            finally:
                for worker in house.workers:
                    await worker.kill()
                await network.close()
                await gateways.close()
