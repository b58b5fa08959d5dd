"""A Prometheus that scrapes services of a test every second, and answers as it would answer KEDA."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator

import httpx

from penstock.service.http_addresses import trusted
from tests.servers import choose
from tests.servers.containers import wait_until
from tests.servers.process import Process, free_port, new_folder, remove


class Prometheus:
    def __init__(self, *targets: int) -> None:
        """`targets`: ports on this machine."""
        self._folder = new_folder("prometheus")
        self._port = free_port()
        scraped = [{"targets": [f"127.0.0.1:{port}" for port in targets]}]
        jobs = [{"job_name": "penstock", "scrape_interval": "1s", "static_configs": scraped}]
        file = self._folder / "prometheus.yml"
        file.write_text(json.dumps({"global": {"evaluation_interval": "1s"}, "scrape_configs": jobs}))
        command = [
            *(choose.prometheus(), f"--config.file={file}", f"--storage.tsdb.path={self._folder / 'data'}"),
            f"--web.listen-address=127.0.0.1:{self._port}",
        ]
        self._process = Process(command, log=self._folder / "log", env=os.environ, spawn={})
        wait_until(self._ready, "Prometheus", 30)

    async def ask(self, query: str) -> float | None:
        """The one value that a query gives; None where it gives none. Raises ValueError where KEDA would not take the answer."""
        async with httpx.AsyncClient(verify=trusted()) as client:
            answer = await client.get(f"http://127.0.0.1:{self._port}/api/v1/query", params={"query": query})
        body = answer.json()
        if body["status"] != "success":
            raise ValueError(body["error"])
        found = body["data"]["result"]
        if len(found) > 1:
            raise ValueError(f"{query} gives {len(found)} values")
        return float(found[0]["value"][1]) if found else None

    def close(self) -> None:
        self._process.end(signal.SIGTERM, 10)
        remove(self._folder)

    def _ready(self) -> bool:
        if not self._process.alive():
            raise RuntimeError((self._folder / "log").read_text(errors="replace")[-4000:])
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"http://127.0.0.1:{self._port}/-/ready", verify=trusted()).status_code == 200
        return False


@contextlib.asynccontextmanager
async def prometheus(*targets: int) -> AsyncIterator[Prometheus]:
    server = Prometheus(*targets)
    try:
        yield server
    finally:
        server.close()
