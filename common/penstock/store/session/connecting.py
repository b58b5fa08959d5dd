"""A connection to PostgreSQL with the settings that Penstock needs, and errors that do not quote its password."""

from __future__ import annotations

import re
import socket
from urllib.parse import unquote

import asyncpg

from penstock.errors import ConfigurationError, ConnectionFailed, ServerFull
from penstock.language.terms.redaction import concealed, hidden_forms
from penstock.settings import Settings
from penstock.store.session.session_options import (
    NO_TRANSACTION_TIMEOUT,
    TRANSACTION_TIMEOUT_SINCE,
    of_connection,
)
from penstock.store.session.type_cache import KnowingConnection

Row = asyncpg.Record
KEPT_ALIVE = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 10_000}
"""Socket options, where the system has them (seconds, and milliseconds). A machine that vanishes is noticed after ten
seconds. Without them, a process that waits for an answer would wait for ever, and one that sends for a quarter of an
hour."""


HINTS: tuple[tuple[type[Exception], str], ...] = (
    (
        asyncpg.InvalidCatalogNameError,
        "Create the database with createdb, or correct PENSTOCK_DATABASE_URL.",
    ),
    (
        asyncpg.InvalidAuthorizationSpecificationError,
        "Correct user and password in PENSTOCK_DATABASE_URL, or create the role.",
    ),
    (
        asyncpg.TooManyConnectionsError,
        "Raise the limit (max_connections, or that of the role or the database), run fewer processes, "
        "lower PENSTOCK_DATABASE_CONNECTIONS, or use a pooler.",
    ),
    (
        asyncpg.TargetServerAttributeNotMatched,
        "Name all hosts in PENSTOCK_DATABASE_URL. If none of them takes writes, promote the standby.",
    ),
    (ConnectionRefusedError, "Start PostgreSQL, or correct host and port in PENSTOCK_DATABASE_URL."),
    (
        TimeoutError,
        "Check host and port in PENSTOCK_DATABASE_URL, and firewalls between this machine and the server.",
    ),
)
"""The hint for each kind of connection error."""
HINT = "Correct PENSTOCK_DATABASE_URL, or read the log of the server."


async def connect(url: str, settings: Settings, *, role: str, timeout: float = 10) -> asyncpg.Connection[Row]:
    """Open a connection. Raises ConnectionFailed, without the URL's password, if the server cannot be reached, and
    ServerFull if it has no free connection. Raises ConfigurationError if the URL is not valid, or a pooler refuses the
    settings of the session."""
    server: dict[str, str] = {"application_name": f"{role}:{settings.name}"[:63]}
    if not settings.database_pooler:
        server |= of_connection(settings)
    try:
        connection = await asyncpg.connect(
            url,
            connection_class=KnowingConnection,
            server_settings=server,
            timeout=timeout,
            statement_cache_size=0 if settings.database_pooler else 200,
        )
        if (
            not settings.database_pooler
            and connection.get_server_version().major >= TRANSACTION_TIMEOUT_SINCE
        ):
            await connection.execute(
                f"set {NO_TRANSACTION_TIMEOUT}"
            )  # an older server rejects an unknown setting
    except (ValueError, OverflowError):  # the error's text may contain a part of the password
        raise ConfigurationError(
            "PENSTOCK_DATABASE_URL is not an address of PostgreSQL",
            hint="Write postgresql://user:password@host:5432/database, and percent-encode special characters in the "
            "password (/ is %2F, @ is %40).",
        ) from None
    except (
        OSError,
        TimeoutError,
        asyncpg.PostgresError,
        asyncpg.InterfaceError,
        asyncpg.InternalClientError,  # none of several hosts accepts writes at present
    ) as error:
        if "startup parameter" in str(error) and not settings.database_pooler:
            raise ConfigurationError(
                f"a pooler{_place(url)} refuses the settings of sessions: {without_password(str(error), url)}",
                hint="Set PENSTOCK_DATABASE_POOLER=true: then each transaction sets its own settings. This "
                "works with PgBouncer in every pool mode. Do not let the pooler ignore any of these "
                "settings, because they would then have no effect.",
            ) from None
        raised = ServerFull if isinstance(error, asyncpg.TooManyConnectionsError) else ConnectionFailed
        text = f"{type(error).__name__}: {without_password(str(error), url)}".rstrip(": ")
        hint = next((hint for kind, hint in HINTS if isinstance(error, kind)), HINT)
        raise raised(f"PostgreSQL{_place(url)} does not answer: {text}", hint=hint) from None
    _keep_alive(connection)
    return connection


def _keep_alive(connection: asyncpg.Connection[Row]) -> None:
    raw_socket = connection._transport.get_extra_info("socket")  # type: ignore[attr-defined]  # no public way
    if raw_socket is None or raw_socket.family == socket.AF_UNIX:
        return
    raw_socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEPT_ALIVE.items():
        if hasattr(socket, name):
            raw_socket.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _place(url: str) -> str:
    """Return host, port and database of an address, or nothing if it is unclear where the password ends."""
    user, at, place = url.partition("?")[0].rpartition("@")
    return f" at {place}" if at and "/" not in user.partition("://")[2] else ""


def without_password(text: str, url: str) -> str:
    """Return `text` without anything that could be the password of this address."""
    return concealed(text, hidden_forms(_passwords(url)))


def _passwords(url: str) -> set[str]:
    """Return the passwords in the user part and in the query of an address, both as written and decoded."""
    user = url.split("://", 1)[-1].rsplit("@", 1)[0] if "@" in url else ""
    written = [user.split(":", 1)[1]] if ":" in user else []
    written += re.findall(r"[?&]password=([^&]*)", url)
    return {form for password in written for form in (password, unquote(password)) if form}
