"""The PostgreSQL server: reachable, of a version that we know, durable, on time, with room, and vacuumed."""

from __future__ import annotations

import time
from typing import Any, TypeAlias

import asyncpg

from penstock.operate.doctor.finding import Finding, bad, ok, warning
from penstock.settings import Settings

OLDEST = 140_000
DEADLINE = 5.0
"""Seconds to connect."""
CLOCKS_WARN, CLOCKS_BAD = 1.0, 3600.0
"""Seconds between the clocks. Only ids and people's eyes go by ours; ids of an hour off are refused."""
LONG = 300.0
"""Seconds after which an open transaction keeps vacuum from doing its work."""

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

STATE = """
select current_setting('server_version') as version, current_setting('server_version_num')::integer as number,
    pg_is_in_recovery() or current_setting('transaction_read_only')::boolean as read_only,
    current_setting('fsync')::boolean and current_setting('full_page_writes')::boolean as safe,
    current_setting('synchronous_commit') as commits,
    current_setting('autovacuum')::boolean and current_setting('track_counts')::boolean as vacuums,
    current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer as room,
    (select count(*) from pg_stat_activity where backend_type = 'client backend') as used
"""
UNVACUUMED = """
select string_agg(c.relname, ', ') from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = current_schema() and 'autovacuum_enabled=false' = any(c.reloptions)
"""
LONG_TRANSACTIONS = """
select pid, application_name, extract(epoch from clock_timestamp() - xact_start)::float8 as age from pg_stat_activity
where xact_start < clock_timestamp() - make_interval(secs => $1) and pid <> pg_backend_pid()
    and backend_type = 'client backend' and datname = current_database()
order by xact_start limit 1
"""


async def reach(settings: Settings) -> tuple[Connection | None, list[Finding]]:
    """A connection as the services make them, or why there is none."""
    if settings.database_url is None:
        return None, [
            bad("postgresql", "no database is named", "Set PENSTOCK_DATABASE_URL, or run `penstock dev`.")
        ]
    given: dict[str, Any] = {} if settings.database_pooler else {"search_path": settings.database_schema}
    begun = time.perf_counter()
    try:
        connection = await asyncpg.connect(
            settings.database_url.get_secret_value(),
            timeout=DEADLINE,
            server_settings={"application_name": f"doctor:{settings.name}"[:63], **given},
            statement_cache_size=0 if settings.database_pooler else 100,
        )
    except (
        OSError,
        TimeoutError,
        ValueError,
        asyncpg.PostgresError,
        asyncpg.InterfaceError,
        asyncpg.InternalClientError,
    ) as error:
        return None, [_unreachable(error)]
    took = (time.perf_counter() - begun) * 1000
    address = connection.get_server_version()
    return connection, [
        ok("postgresql", f"{address.major}.{address.minor} answers, connected in {took:.0f} ms")
    ]


def _unreachable(error: Exception) -> Finding:
    said = f"{type(error).__name__}: {error}".rstrip(": ")
    fixes: tuple[tuple[type[Exception], str], ...] = (
        (
            asyncpg.InvalidCatalogNameError,
            "Create the database with createdb, or correct PENSTOCK_DATABASE_URL.",
        ),
        (
            asyncpg.InvalidAuthorizationSpecificationError,
            "Correct user and password in PENSTOCK_DATABASE_URL.",
        ),
        (
            asyncpg.TooManyConnectionsError,
            "Raise max_connections, run fewer services, or put a pooler before it.",
        ),
        (ConnectionRefusedError, "Start PostgreSQL, or correct host and port in PENSTOCK_DATABASE_URL."),
        (
            TimeoutError,
            "Look for a firewall between here and there, and at host and port in PENSTOCK_DATABASE_URL.",
        ),
    )
    fix = next((fix for kind, fix in fixes if isinstance(error, kind)), "Correct PENSTOCK_DATABASE_URL.")
    return bad("postgresql", f"does not answer: {said}", fix)


async def findings(connection: Connection, settings: Settings) -> list[Finding]:
    state = await connection.fetchrow(STATE)
    assert state is not None
    return [
        _version(state),
        _writable(state),
        await _clocks(connection),
        _durable(state),
        await _vacuum(connection, state),
        _room(state),
        await _long_transactions(connection),
    ]


def _version(state: asyncpg.Record) -> Finding:
    if state["number"] < OLDEST:
        return bad(
            "version", f"PostgreSQL {state['version']}", "Update it: Penstock needs PostgreSQL 14 or later."
        )
    return ok("version", f"PostgreSQL {state['version']}")


def _writable(state: asyncpg.Record) -> Finding:
    if state["read_only"]:
        return bad(
            "writable",
            "this is a standby, or the database is read-only",
            "Name all hosts in PENSTOCK_DATABASE_URL, with ?target_session_attrs=read-write.",
        )
    return ok("writable", "yes")


async def _clocks(connection: Connection) -> Finding:
    """The difference at the middle of a round trip; of several, the quickest one says most."""
    trips = []
    for _ in range(3):
        before = time.time()
        theirs = float(await connection.fetchval("select extract(epoch from clock_timestamp())::float8"))
        after = time.time()
        trips.append((after - before, abs(theirs - (before + after) / 2)))
    off = min(trips)[1]
    says = f"this machine and the database are {off * 1000:.0f} ms apart"
    fix = "Let both machines keep time by NTP (chrony, systemd-timesyncd)."
    if off > CLOCKS_BAD:
        return bad("clocks", f"{says}; ids made here are refused", fix)
    return warning("clocks", says, fix) if off > CLOCKS_WARN else ok("clocks", says)


def _durable(state: asyncpg.Record) -> Finding:
    if not state["safe"]:
        return bad(
            "durability",
            "fsync or full_page_writes is off: a crash of the server can lose or damage everything",
            "Set both to on in postgresql.conf, and reload.",
        )
    if state["commits"] == "off":
        return warning(
            "durability",
            "synchronous_commit is off: a crash of the server can forget what was acknowledged",
            "Set it to on for this database: alter database NAME set synchronous_commit = on.",
        )
    return ok("durability", f"fsync is on, synchronous_commit is {state['commits']}")


async def _vacuum(connection: Connection, state: asyncpg.Record) -> Finding:
    if not state["vacuums"]:
        return bad(
            "autovacuum",
            "off: tables grow, plans go wrong, and in the end the server stops",
            "Set autovacuum and track_counts to on in postgresql.conf, and reload.",
        )
    tables = await connection.fetchval(UNVACUUMED)
    if tables:
        return warning("autovacuum", f"off for {tables}", "alter table NAME reset (autovacuum_enabled)")
    return ok("autovacuum", "on")


def _room(state: asyncpg.Record) -> Finding:
    says = f"{state['used']} of {state['room']} are in use"
    fix = "Raise max_connections, run fewer services, or put PgBouncer before it (PENSTOCK_DATABASE_POOLER=true)."
    if state["used"] >= 0.95 * state["room"]:
        return bad("connections", says, fix)
    return (
        warning("connections", says, fix) if state["used"] >= 0.8 * state["room"] else ok("connections", says)
    )


async def _long_transactions(connection: Connection) -> Finding:
    row = await connection.fetchrow(LONG_TRANSACTIONS, LONG)
    if row is None:
        return ok("long transactions", "none")
    return warning(
        "long transactions",
        f"{row['application_name'] or 'a client'} (pid {row['pid']}) has had one open for {row['age']:.0f} s",
        f"End it, for vacuum cannot clean up after it: select pg_terminate_backend({row['pid']})",
    )
