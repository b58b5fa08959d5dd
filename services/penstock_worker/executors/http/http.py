"""The executor of actions that are URLs (`penstock.attempts.http`).

When the attempt is cancelled the connection is closed. The other side may go on. Proxies from the environment are not
used: connections go to the address that was checked.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from pathlib import Path

import httpcore
import httpx

from penstock.attempts.http import http_calls
from penstock.errors import ConfigurationError
from penstock.language.definitions.http_request import HttpTls
from penstock.run.task_executors import ExecutorMetrics, Outcome, Run, Tally
from penstock.service.http_addresses import Addresses, GuardedNetwork, trusted


class HttpExecutor:
    def __init__(self, *, capacity: int = 50, allow: Iterable[str] = (), files: str | None = None) -> None:
        """Create the executor. `capacity` is the number of requests at a time. `allow` has host names, addresses and
        networks that may be reached although they are not public. `files` is the folder of files that multipart bodies
        may name. Raises ConfigurationError if one of them is invalid.
        """
        if files is not None and not Path(files).is_dir():
            raise ConfigurationError(
                f"{files}, the folder of files of the http executor, does not exist",
                hint="Create it, or name another.",
            )
        self.name = "http"
        self._tally = Tally(self.name, capacity)
        self.has_capacity = self._tally.has_capacity
        self._addresses = Addresses(allow)
        self._folder = Path(files) if files is not None else None
        self._pools: dict[HttpTls | None, httpcore.AsyncConnectionPool] = {}

    async def open(self) -> None:
        """Do nothing. The first request opens the connections, since most workers make none."""

    async def execute(self, run: Run) -> Outcome:
        return await self._tally.counted(self._run, run)

    def metrics(self) -> ExecutorMetrics:
        return self._tally.metrics()

    async def close(self, grace: float) -> None:
        """Close idle connections. Requests end with the tasks that await them."""
        for pool in self._pools.values():
            await pool.aclose()
        self._pools.clear()

    def _connections(self, tls: HttpTls | None = None) -> httpcore.AsyncConnectionPool:
        pool = self._pools.get(tls)
        if pool is None:
            pool = self._pools[tls] = httpcore.AsyncConnectionPool(
                ssl_context=trusted() if tls is None else _ssl_context(tls),
                max_connections=self._tally.capacity,
                keepalive_expiry=30.0,
                network_backend=GuardedNetwork(self._addresses),
            )
        return pool

    async def _run(self, run: Run) -> Outcome:
        return await http_calls.call(run, self._connections, self._folder)


def _ssl_context(tls: HttpTls) -> ssl.SSLContext:
    """Return the context for the files of TLS. Raises ConfigurationError if the worker cannot read one."""
    try:
        context = httpx.create_ssl_context() if tls.ca is None else ssl.create_default_context(cafile=tls.ca)
        if tls.cert is not None:
            context.load_cert_chain(tls.cert, tls.key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            f"the files of TLS cannot be used on this worker: {error}",
            hint="Put readable PEM files at these paths on every worker that serves the action.",
        ) from None
    return context
