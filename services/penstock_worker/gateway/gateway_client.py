"""The calls of the worker protocol (docs/workers-in-any-language.md), sent until a gateway answers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import orjson
import structlog

from penstock.client.server_address import checked_address
from penstock.errors import PenstockError

log = structlog.get_logger()

PATIENCE_S = 15.0
"""Seconds for an answer, in addition to those for which a call waits."""
PAUSE_S = 0.2
"""Seconds before a call is sent again for the first time. Each further pause is twice as long."""
LONGEST_PAUSE_S = 5.0
SESSION_HEADER = "Penstock-Session"
PREFIX = "/api/v1/work"
NOTHING: Mapping[str, Any] = {}


class Refused(PenstockError):
    """A gateway refused a call, and would refuse it again. Its message says why. `kind` is the error in the answer."""

    def __init__(self, message: str, *, hint: str | None, status: int, kind: str) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.kind = kind


def gateway_addresses(servers: str) -> list[str]:
    """Return the addresses in a list separated by commas. Raises ConfigurationError for one that is not valid."""
    return [checked_address(server.strip()).rstrip("/") for server in servers.split(",")]


def environment_proxy(server: str) -> str | None:
    """Return the proxy that the environment names for an address (`HTTPS_PROXY`, `NO_PROXY`), with its password; None for none.
    A worker behind a firewall may have to go through one."""
    address = urlsplit(server)
    return None if proxy_bypass(address.netloc.rpartition("@")[2]) else getproxies().get(address.scheme)


class GatewayClient:
    """The connections of one event loop. A call without an answer is sent again, to the next gateway."""

    def __init__(self, servers: Sequence[str], token: str) -> None:
        self._servers = list(servers)
        self._http = aiohttp.ClientSession(
            headers={"authorization": f"Bearer {token}", "content-type": "application/json"},
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        self._proxies = {server: environment_proxy(server) for server in self._servers}
        self._is_answered = True

    async def call(
        self,
        name: str,
        message: Mapping[str, Any],
        session: str | None = None,
        *,
        wait: float = 0.0,
        again: Mapping[str, Any] = NOTHING,
    ) -> dict[str, Any]:
        """Send a message, and return its answer. `wait`: the seconds that the gateway may wait before it answers.
        `again`: fields that are added when the message is sent again. Raises Refused if the gateway rejects the
        message."""
        headers = {} if session is None else {SESSION_HEADER: session}
        pause = PAUSE_S
        while True:
            server = self._servers[0]
            try:
                async with self._http.post(
                    f"{server}{PREFIX}/{name}",
                    data=orjson.dumps(message),
                    headers=headers,
                    proxy=self._proxies[server],
                    timeout=aiohttp.ClientTimeout(connect=PATIENCE_S, sock_read=PATIENCE_S + wait),
                    allow_redirects=False,
                ) as answer:
                    content = await answer.read()
                if answer.status < 400:
                    document = orjson.loads(content) if content else {}
                    self._note_answer(server)
                    return dict(document)
                if answer.status != 429 and answer.status < 500:
                    raise _refusal(answer.status, answer.reason, content)
                reason = f"{answer.status} {answer.reason}"
            except (aiohttp.ClientError, TimeoutError, ValueError, TypeError) as error:
                reason = f"{type(error).__name__}: {error}".rstrip(": ")
            if self._is_answered:
                self._is_answered = False
                log.warning("worker.gateway_does_not_answer", server=server, what=name, reason=reason)
            self._servers.append(self._servers.pop(self._servers.index(server)))
            message = {**message, **again}
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))
            pause = min(2 * pause, LONGEST_PAUSE_S)

    @property
    def is_answered(self) -> bool:
        """Return whether the latest call was answered."""
        return self._is_answered

    async def close(self) -> None:
        await self._http.close()

    def _note_answer(self, server: str) -> None:
        if not self._is_answered:
            log.info("worker.gateway_answers", server=server)
        self._is_answered = True


def _refusal(status: int, reason: str | None, content: bytes) -> Refused:
    try:
        document = orjson.loads(content)
    except ValueError:
        document = None
    problem = document if isinstance(document, dict) else {}
    message = problem.get("detail") or problem.get("title") or f"{status} {reason}"
    hint = problem.get("hint") or "Check the address of the gateway and the token (--server, PENSTOCK_TOKEN)."
    kind = str(problem.get("type", "")).rpartition(":")[2]
    return Refused(f"the gateway refused: {message}", hint=hint, status=status, kind=kind)
