"""A connection to RabbitMQ that is opened again whenever it is lost.

aio-pika opens it, and this module reacts to a loss. aio-pika's robust connection has reconnected without its
consumers before, and a publisher could wait on it for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Sequence

import aio_pika
import structlog
from aio_pika.abc import AbstractConnection
from aiormq.abc import AbstractConnection as RawConnection
from aiormq.exceptions import ProbableAuthenticationError
from yarl import URL

from penstock.errors import ConfigurationError, ConnectionFailed
from penstock.messaging.supervision import Supervisor
from penstock.messaging.transports.rabbitmq.address import shown
from penstock.messaging.transports.rabbitmq.call_timeouts import (
    answered,
    pause,
    persistently,
    quietly,
    reason,
)
from penstock.messaging.transports.rabbitmq.undecodable import SparingConnection, is_undecodable

log = structlog.get_logger(__name__)

OLDEST = (3, 10)
"""The first RabbitMQ whose quorum queues dead-letter at least once."""


FULL_HINT = (
    "Each process has two connections: run fewer, or raise the limit (`rabbitmqctl list_vhost_limits`, "
    "`list_user_limits`)."
)


def connection_hint(failures: Sequence[str]) -> str:
    """Return what to do about the failures of all addresses."""
    if any("limit" in failure for failure in failures):
        return FULL_HINT
    if any("access to vhost" in failure for failure in failures):
        return (
            "Give the user permissions in this virtual host: `rabbitmqctl set_permissions -p VHOST USER ...`. "
            "`penstock roles --broker` prints them for each service."
        )
    return "Check that RabbitMQ runs, and that host, port and virtual host are correct."


class Link:
    """A connection that is opened again after each loss. `prepare` runs on each new one before its first use."""

    def __init__(
        self,
        addresses: Sequence[URL],
        purpose: str,
        supervisor: Supervisor,
        prepare: Callable[[RawConnection], Awaitable[None]] | None = None,
    ) -> None:
        self.supervisor = supervisor
        self._addresses = [a.update_query(name=f"{a.query['name']} {purpose}") for a in addresses]
        random.shuffle(self._addresses)  # so that replicas spread over the nodes
        self._purpose = purpose
        self._prepare = prepare
        self._connection: AbstractConnection | None = None
        self._raw: RawConnection | None = None
        self._up = asyncio.Event()
        self._renew = asyncio.Event()
        self.gone = asyncio.Event()
        """Set when the present connection is given up; the next one has another event."""
        self._sparing = False
        self._keeper: asyncio.Task[None] | None = None

    @property
    def up(self) -> bool:
        return self._up.is_set()

    async def open(self, deadline: float) -> None:
        """Connect. Raises ConnectionFailed after `deadline` seconds, ConfigurationError at once."""
        await persistently("connect to RabbitMQ", self._connect, deadline=deadline)
        self.keep_open()

    def keep_open(self) -> None:
        """Keep a connection open from now on, whether there is one yet or not."""
        self._keeper = self.supervisor.start(f"rabbitmq {self._purpose} connection", self._keep)

    async def connection(self, wait: float) -> RawConnection:
        """Return the open connection. Raises ConnectionFailed if there is none within `wait` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._up.wait()
        if self._raw is None:
            raise ConnectionFailed("RabbitMQ is not connected", hint="The connection is retried.")
        return self._raw

    def renew(self, why: str) -> None:
        """Close this connection and open another."""
        log.warning("rabbitmq.connection_renewed", purpose=self._purpose, reason=why)
        self._renew.set()

    async def close(self) -> None:
        if self._keeper is not None:
            await self.supervisor.stop(self._keeper)
        await self._drop()

    async def _keep(self) -> None:
        """Keep a connection open. The loop can start in any state in which an earlier run of it stopped."""
        while True:
            if self._raw is not None:
                await self._until_lost(self._raw)
            await self._drop()
            await asyncio.sleep(pause())
            # Wrong arguments or permissions do not end the loop: an operator may be correcting them.
            await persistently("reconnect to RabbitMQ", self._connect, also=ConfigurationError)
            log.info("rabbitmq.connection_restored", purpose=self._purpose)

    async def _until_lost(self, connection: RawConnection) -> None:
        closing = connection.closing
        renewing = asyncio.create_task(self._renew.wait())
        try:
            await asyncio.wait([closing, renewing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            renewing.cancel()
        if closing.done():
            error = None if closing.cancelled() else closing.exception()
            self._sparing = self._sparing or is_undecodable(error)
            log.warning("rabbitmq.connection_lost", purpose=self._purpose, reason=reason(error))

    async def _connect(self) -> None:
        failures = []
        for address in self._addresses:
            try:
                return await self._connect_to(address)
            except ConnectionFailed as error:
                failures.append(f"{shown(address)}: {error.message}")
        raise ConnectionFailed(
            "RabbitMQ could not be reached: " + "; ".join(failures),
            hint=connection_hint(failures),
        )

    async def _connect_to(self, address: URL) -> None:
        cls = SparingConnection if self._sparing else aio_pika.Connection
        try:
            async with answered():
                connection = await aio_pika.connect(address, connection_class=cls)
        except ConnectionFailed as error:
            if isinstance(error.__cause__, ProbableAuthenticationError):
                raise ConfigurationError(
                    f"RabbitMQ refused the user name or password for {shown(address)}",
                    hint="Check the user name and the password. The user guest may only connect from the "
                    "machine of the broker.",
                ) from None
            raise
        assert connection.transport is not None
        raw = connection.transport.connection
        try:
            check_version(raw)
            if self._prepare is not None:
                await self._prepare(raw)
        except BaseException:
            await quietly(connection.close())
            raise
        self._connection, self._raw = connection, raw
        self.gone = asyncio.Event()
        self._renew.clear()
        self._up.set()

    async def _drop(self) -> None:
        self._up.clear()
        self.gone.set()
        connection, self._connection, self._raw = self._connection, None, None
        if connection is not None:
            await quietly(connection.close())


def check_version(connection: RawConnection) -> None:
    version = str((connection.server_properties or {}).get("version", ""))
    parts = version.split(".")[:2]
    if all(part.isdigit() for part in parts) and tuple(int(part) for part in parts) < OLDEST:
        raise ConfigurationError(
            f"RabbitMQ {version} is too old: its quorum queues cannot dead-letter at least once",
            hint="Penstock needs RabbitMQ 3.10 or later.",
        )
