"""One executor or worker as a process: its port, its log, and the signals it gets."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.crash.processes import Fleet, Started
from tests.servers.process import free_port

SAMPLE = re.compile(r"^(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)$")
LABEL = re.compile(r'(\w+)="([^"]*)"')


class Service:
    """Started at once. `environment`: settings by name, as `name="east-1a"`."""

    def __init__(
        self,
        role: str,
        *words: str,
        database: str,
        broker: str | None,
        folder: Path,
        **environment: Any,
    ) -> None:
        self.name: str = environment["name"]
        self.port = free_port()
        self.log = folder / f"{self.name}-{self.port}.log"
        given = {"log_level": "info", "log_format": "json", **environment, "port": self.port}
        self._fleet = Fleet(database, broker, self.log, forked=False, **given)
        self.process: Started = self._fleet.start(role, *words)

    @property
    def pid(self) -> int:
        return self.process.pid

    def kill(self) -> None:
        """kill -9"""
        self._fleet.kill(self.process)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def ended(self, seconds: float = 30) -> int:
        """Its exit code, once it has ended."""
        return await asyncio.to_thread(self.process.wait, seconds)

    async def get(self, path: str) -> tuple[int, str]:
        """Status and body of a path of its port; (0, "") without an answer."""

        def ask() -> tuple[int, str]:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                return error.code, error.read().decode()
            except OSError:
                return 0, ""

        return await asyncio.to_thread(ask)

    async def ready(self, seconds: float = 150) -> None:
        """Wait until /ready says so. Raises AssertionError with the end of its log if it never does."""
        end = asyncio.get_running_loop().time() + seconds
        while (await self.get("/ready"))[0] != 200:
            if self.process.poll() is not None or asyncio.get_running_loop().time() > end:
                raise AssertionError(f"{self.name} does not become ready: {self.said()[-600:]}")
            await asyncio.sleep(0.1)

    async def metrics(self, name: str) -> dict[str, float]:
        """The samples of a metric, by the values of their labels."""
        found = {}
        for line in (await self.get("/metrics"))[1].splitlines():
            sample = SAMPLE.match(line)
            if sample and sample["name"] == name:
                labels = ",".join(value for _, value in LABEL.findall(sample["labels"] or ""))
                found[labels] = float(sample["value"])
        return found

    async def metric(self, name: str) -> float:
        """The sum of a metric's samples."""
        return sum((await self.metrics(name)).values())

    def said(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def lines(self, event: str | None = None) -> list[dict[str, Any]]:
        """Return its log lines, as JSON."""
        found = [json.loads(line) for line in self.said().splitlines() if line.startswith("{")]
        return [line for line in found if event is None or line.get("event") == event]

    def close(self) -> None:
        self._fleet.__exit__()
