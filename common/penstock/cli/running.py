"""How a command runs its coroutine, with a client or a session."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import structlog

from penstock.client import Client
from penstock.database import Database, Session
from penstock.settings import Settings, load

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end. What is logged meanwhile goes to standard error, and only if it
    is an error."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.KeyValueRenderer(key_order=["event"]),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )
    for noisy in ("aiormq", "aio_pika"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    return asyncio.run(work)


def with_client(work: Callable[[Client], Awaitable[T]]) -> T:
    """Run `work` with a connected client."""

    async def start() -> T:
        async with Client.connect(await found()) as client:
            answer = await work(client)
            await client.flush()
            return answer

    return run(start())


def with_session(work: Callable[[Session], Awaitable[T]]) -> T:
    """Run `work` with a session; no broker is needed."""

    async def start() -> T:
        database = Database(await found(), role="cli")
        try:
            return await work(database.session())
        finally:
            await database.close()

    return run(start())


async def found() -> Settings:
    """The settings; where no database is named, those of a running `penstock dev` in this folder."""
    settings = load()
    if settings.database_url is None:
        from penstock.cli.local import running_server

        return await running_server(settings)
    return settings
