"""An action that calls a service. The service is a file: it is down while the file exists, and each call is a line in another."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path

from penstock import Breaker, RetryPolicy, action, current

FOLDER = "TEST_CALLED_SERVICE"
"""The variable that names the folder of the service."""
THRESHOLD, OF, PROBE_S = 20, 50, 2.0
LATENCY_S = 0.02


@dataclass(frozen=True)
class Call:
    """A call that reached the service, by the clock of this machine."""

    n: int
    execution: str
    attempt: int
    at: float
    is_refused: bool


class Service:
    """The service, as the program and the workers see it."""

    def __init__(self, folder: Path) -> None:
        self._down, self._calls = folder / "down", folder / "calls"

    def stop(self) -> None:
        self._down.touch()

    def start(self) -> None:
        self._down.unlink()

    async def call(self, n: int, execution: str, attempt: int) -> None:
        """Note a call. Raises ConnectionError while the service is down."""
        is_down = self._down.exists()
        line = f"{n} {execution} {attempt} {time.time():.6f} {int(is_down)}\n"
        with self._calls.open("ab", buffering=0) as file:
            file.write(line.encode())
        await asyncio.sleep(LATENCY_S)
        if is_down:
            raise ConnectionError("the service is down")

    def calls(self) -> list[Call]:
        """Return all calls, in their order."""
        lines = [line.split() for line in self._calls.read_text().splitlines()]
        calls = [Call(int(n), id, int(attempt), float(at), down == "1") for n, id, attempt, at, down in lines]
        return sorted(calls, key=lambda call: call.at)


BREAKER = Breaker(THRESHOLD, of=OF, within="1m", probe=PROBE_S)
RETRY = RetryPolicy(max_attempts=1000, initial_delay=0.05, jitter=0)


@action(pack="outage", breaker=BREAKER, retry=RETRY, max_recoveries=1000)
async def pay(n: int) -> int:
    return await _call(n)


@action(
    pack="outage",
    breaker=Breaker(THRESHOLD, of=OF, within="1m", probe=PROBE_S, counts_running=True),
    retry=RETRY,
    max_recoveries=1000,
)
async def pay_with_care(n: int) -> int:
    """Pay as `pay` does, behind a breaker that counts running calls."""
    return await _call(n)


async def _call(n: int) -> int:
    run = current()
    await Service(Path(os.environ[FOLDER])).call(n, str(run.execution_id), run.attempt)
    return n
