"""Services as a unit or a compose file starts them, without systemd or Docker: the same words and variables, in a folder."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.crash.processes import COMMAND_LINE, python_path


class Native:
    """Ends by its id whatever it started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log = folder / "log"
        self._alive: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Native:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._alive:
            process.kill()
            process.wait()

    def start(self, words: list[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """`penstock` with these words, and no variable of Penstock's but these."""
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *COMMAND_LINE, *words],
                env=self._environment(environment),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._alive.append(process)
        return process

    async def run(self, *words: str, environment: Mapping[str, str]) -> None:
        """Run a command. Raises AssertionError, with the last lines of all services, if it fails."""
        assert await self.ended(self.start(list(words), environment)) == 0, self.said()

    async def ended(self, process: subprocess.Popen[bytes], seconds: float = 60) -> int:
        return await asyncio.to_thread(process.wait, seconds)

    async def stop(self, process: subprocess.Popen[bytes], seconds: float) -> int:
        """Its exit code after the signal that both stop with. Raises TimeoutExpired where it would have been killed."""
        process.send_signal(signal.SIGTERM)
        return await self.ended(process, seconds)

    async def healthy(self, check: list[str]) -> None:
        """Wait until a health check succeeds, as it is written."""
        words = [sys.executable if word == "python" else word for word in check]
        async with asyncio.timeout(60):
            while (
                await asyncio.to_thread(subprocess.run, words, capture_output=True, timeout=30)
            ).returncode != 0:
                await asyncio.sleep(0.3)

    def said(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]

    def _environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a service, with the package of the folder."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        return {**environment, **given, "PYTHONPATH": os.pathsep.join((python_path(), str(self.folder)))}
