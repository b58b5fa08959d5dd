"""The executor of actions that are URLs. With `request` in its options, an action is a client (http_client.py). Without it,
the executor POSTs the parameters in an envelope as JSON, and the answer is the result:

| answer | meaning |
|---|---|
| 2xx | completed; the result is the JSON body, or null if there is none. |
| 408, 425, 429, 5xx | failed; the action's policy `retry` may try again, after `Retry-After` if it says so. |
| 307, 308 | sent on, after the new address was checked like the first. |
| other | failed for good. |

A connection that cannot be made is retried. One that breaks after the request was sent is left to the retry policy,
because the work may have been done. Receivers should honour `Idempotency-Key`, which is the same in every attempt.
When the attempt is cancelled the connection is closed. The other side may go on. Proxies from the environment are not
used: connections go to the address that was checked.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import httpcore
import httpx
import orjson

from penstock.errors import (
    AddressRefused,
    ConfigurationError,
    DefinitionError,
    InvalidInput,
    ResultNotStorable,
)
from penstock.language.definitions.http_request import HttpTls
from penstock.language.definitions.program_actions import HttpOptions
from penstock.run.task_executors import ExecutorMetrics, Outcome, Run, Tally
from penstock.service.http_addresses import Addresses, GuardedNetwork, trusted
from penstock_worker.executors.http import http_answers, http_client, http_signature
from penstock_worker.executors.options import program_of

REDIRECTS = frozenset({307, 308})
"""The redirects that keep the method and the body. Others would turn the POST into a GET."""
MAX_REDIRECTS = 3
_OURS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "content-type", "accept-encoding"}
)


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
        try:
            options, params = program_of(run, HttpOptions)
            if options.request is not None:
                return await http_client.call(
                    run, options, options.request, params, self._connections, self._folder
                )
            return await self._post(run, options, _body(run, params))
        except (DefinitionError, InvalidInput, AddressRefused, ResultNotStorable) as error:
            return Outcome.refused(error, retryable=False)
        except ConfigurationError as error:
            return Outcome.refused(error)
        except http_answers.Unreachable as error:
            return error.outcome()

    async def _post(self, run: Run, options: HttpOptions, body: bytes) -> Outcome:
        connections = self._connections()
        url = httpx.URL(options.url)
        headers = {**options.headers, **_headers(run, options, body)}
        timeout = {"connect": options.connect_timeout, "read": options.timeout, "write": options.timeout}
        for _ in range(MAX_REDIRECTS + 1):
            with http_answers.reaching("POST", url):
                async with connections.stream(
                    "POST",
                    _for_core(url),
                    headers=list(headers.items()),
                    content=body,
                    extensions={"timeout": timeout},
                ) as response:
                    run.log("log", f"POST {http_answers.shown(url)}: {response.status}")
                    answer = httpx.Headers(response.headers)
                    if response.status not in REDIRECTS:
                        content, whole = await http_answers.read(response, answer, run.result_limit)
                        return http_answers.outcome(run, url, response.status, answer, content, whole)
            onward = http_answers.onward(url, answer)
            if (onward.scheme, onward.host, onward.port) != (url.scheme, url.host, url.port):
                headers = {name: value for name, value in headers.items() if name not in options.headers}
            url = onward
        raise DefinitionError(
            f"{http_answers.shown(httpx.URL(options.url))} redirects more than {MAX_REDIRECTS} times"
        )


def _body(run: Run, params: Mapping[str, Any]) -> bytes:
    event = run.event
    return orjson.dumps(
        {
            "execution_id": event.execution_id,
            "attempt": event.attempt,
            "max_attempts": event.max_attempts,
            "namespace": event.namespace,
            "action": event.action,
            "root": event.root,
            "workflow": event.workflow,
            "task": event.task,
            "idempotency_token": event.execution_id,
            "params": params,
            **({"context": run.context} if run.context else {}),
        }
    )


def _headers(run: Run, options: HttpOptions, body: bytes) -> dict[str, str]:
    id = f"{run.event.execution_id}:{run.event.attempt}"
    for name in options.headers:
        if name.lower() in _OURS or name.lower().startswith("webhook-"):
            raise DefinitionError(f"the header {name} of {run.action.ref} is for Penstock to set")
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        # uncompressed, so that the bound on the bytes read is a bound on the content
        "Accept-Encoding": "identity",
        "User-Agent": "penstock",
        "Idempotency-Key": str(run.event.execution_id),
        **{name: value for name, value in run.trace.items() if name not in map(str.lower, options.headers)},
    }
    if options.secret_env is not None:
        secret = os.environ.get(options.secret_env)
        if not secret:
            raise ConfigurationError(
                f"this worker has no {options.secret_env}, which {run.action.ref} is to be signed with",
                hint="Set the environment variable on every worker that serves this action.",
            )
        headers |= http_signature.headers(secret, id, int(time.time()), body)
    return headers


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


def _for_core(url: httpx.URL) -> httpcore.URL:
    return httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
