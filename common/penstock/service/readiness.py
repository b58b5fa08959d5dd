"""The readiness of a service: an executor or a worker is ready while it consumes, an API while PostgreSQL answers.

An API stores accepted requests in PostgreSQL, and the outbox publishes them once the broker is back. So an API
without a broker is ready, and one without PostgreSQL is not (EDGES 64).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from penstock.errors import PenstockError
from penstock.service.assembly import Parts
from penstock.store.session import notifications
from penstock.store.session.database import is_transient

ANSWER_TIMEOUT_S = 2.0
"""Seconds that PostgreSQL may take to answer a probe."""

Readiness = Callable[[], Awaitable[str | None]]
"""A check that returns None if the service is ready, otherwise the reason why it is not."""


def consumption(parts: Parts) -> Readiness:
    """Return the check of a service that consumes messages."""

    async def check() -> str | None:
        return None if parts.transport.healthy else "not consuming"

    return check


def database_answers(parts: Parts) -> Readiness:
    """Return the check of a service that only needs PostgreSQL. Each check sends one query."""
    session = parts.database.session()

    async def check() -> str | None:
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                await notifications.ping(session)
        except (TimeoutError, PenstockError):
            return "PostgreSQL does not answer"
        except Exception as error:
            if not is_transient(error):
                raise
            return "PostgreSQL does not answer"
        return None

    return check
