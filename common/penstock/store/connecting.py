"""One connection to PostgreSQL, set up as Penstock needs it, and errors that do not quote its password."""

from __future__ import annotations

import re
from urllib.parse import unquote

import asyncpg

from penstock.errors import ConfigurationError, ConnectionFailed
from penstock.language.redaction import concealed, worth_hiding
from penstock.settings import Settings

Row = asyncpg.Record
LEAST_SILENCE = 10.0
"""Seconds that a transaction may be left alone, however short the stale threshold is."""


async def connect(
    url: str,
    settings: Settings,
    *,
    role: str,
    relaxed: bool = False,
    most: float | None = None,
    timeout: float = 10,
) -> asyncpg.Connection[Row]:
    """A connection. Its commits may be lost in a crash of the server if they are `relaxed`; a statement that takes longer
    than `most` seconds is cancelled. Raises ConnectionFailed, without the URL's password."""
    server: dict[str, str] = {"application_name": f"{role}:{settings.name}"[:63]}
    if not settings.database_pooler:
        server |= {"jit": "off", "search_path": settings.database_schema}
        # A process that falls silent in the midst of a transaction (frozen, cut off) keeps its locks from everybody
        # else. When others take its work over, its locks have to go too.
        silent = max(settings.stale_threshold, LEAST_SILENCE)
        server["idle_in_transaction_session_timeout"] = f"{silent * 1000:.0f}"
        if relaxed:
            server["synchronous_commit"] = "off"
        if most is not None:
            server["statement_timeout"] = f"{most * 1000:.0f}"
    try:
        return await asyncpg.connect(
            url,
            server_settings=server,
            timeout=timeout,
            statement_cache_size=0 if settings.database_pooler else 200,
        )
    except (
        OSError,
        TimeoutError,
        asyncpg.PostgresError,
        asyncpg.InterfaceError,
        asyncpg.InternalClientError,  # of several hosts none takes writes just now
    ) as error:
        raise ConnectionFailed(
            f"PostgreSQL does not answer: {type(error).__name__}: {without_password(str(error), url)}",
            hint="Check PENSTOCK_DATABASE_URL and that the server runs; `penstock doctor` tells more.",
        ) from None
    except (ValueError, OverflowError):  # its text may quote a piece of the password
        raise ConfigurationError(
            "PENSTOCK_DATABASE_URL is not an address of PostgreSQL",
            hint="Write postgresql://user:password@host:5432/database, and percent-encode special characters in the "
            "password (/ is %2F, @ is %40).",
        ) from None


def without_password(text: str, url: str) -> str:
    """The text with what could be the password of this address taken out."""
    return concealed(text, worth_hiding(_passwords(url)))


def _passwords(url: str) -> set[str]:
    """What an address says in its user part and in its query, as it is written there and as it is meant."""
    user = url.split("://", 1)[-1].rsplit("@", 1)[0] if "@" in url else ""
    written = [user.split(":", 1)[1]] if ":" in user else []
    written += re.findall(r"[?&]password=([^&]*)", url)
    return {form for one in written for form in (one, unquote(one)) if form}
