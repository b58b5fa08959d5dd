"""The checks of the PostgreSQL server: it is reachable, has a supported version, is durable, on time, and vacuumed."""

from __future__ import annotations

import time

from penstock.errors import PenstockError
from penstock.operate.doctor.finding import Finding, bad, ok, warning
from penstock.settings import Settings
from penstock.store.schema import server_state
from penstock.store.schema.server_state import ServerState
from penstock.store.session import notifications
from penstock.store.session.database import Database, Session

OLDEST = 140_000
CLOCKS_WARN, CLOCKS_BAD = 1.0, 3600.0
"""Seconds between the clocks of this machine and the database, for a warning and for a fault. Only ids and displayed
times use this machine's clock; ids that are off by an hour are rejected."""
LONG = 300.0
"""Seconds after which an open transaction counts as too long: it keeps vacuum from doing its work."""


async def reach(settings: Settings) -> tuple[Database | None, Finding]:
    """Connect to the database as the services do. Return it, for the caller to close, and a finding; None if it
    cannot be reached."""
    if settings.database_url is None:
        return None, bad(
            "postgresql", "no database is named", "Set PENSTOCK_DATABASE_URL, or run `penstock dev`."
        )
    database = Database(settings, role="doctor")
    start = time.perf_counter()
    try:
        await notifications.ping(database.session())
    except PenstockError as error:
        return None, bad("postgresql", error.message, error.hint or "Correct PENSTOCK_DATABASE_URL.")
    took_ms = (time.perf_counter() - start) * 1000
    return database, ok("postgresql", f"PostgreSQL answers, connected in {took_ms:.0f} ms")


async def findings(session: Session) -> list[Finding]:
    state = await server_state.read(session)
    return [
        _version(state),
        _writable(state),
        await _clocks(session),
        _durable(state),
        await _vacuum(session, state),
        await _long_transactions(session),
    ]


def _version(state: ServerState) -> Finding:
    if state.number < OLDEST:
        return bad(
            "version", f"PostgreSQL {state.version}", "Update it: Penstock needs PostgreSQL 14 or later."
        )
    return ok("version", f"PostgreSQL {state.version}")


def _writable(state: ServerState) -> Finding:
    if state.read_only:
        return bad(
            "writable",
            "this is a standby, or the database is read-only",
            "Name all hosts in PENSTOCK_DATABASE_URL, with ?target_session_attrs=read-write.",
        )
    if state.frozen:
        return warning(
            "writable",
            "yes, although default_transaction_read_only is on for this database or role",
            "Penstock sets its own sessions to read-write, so this setting does not stop it. To stop all "
            "writes, stop the services, or refuse connections: alter database ... with allow_connections "
            "false.",
        )
    return ok("writable", "yes")


async def _clocks(session: Session) -> Finding:
    """Compare the clocks. The database's clock is compared with the middle of a round trip; the quickest of several
    is the most exact."""
    trips = []
    for _ in range(3):
        start = time.time()
        theirs = await server_state.seconds_since_epoch(session)
        end = time.time()
        trips.append((end - start, abs(theirs - (start + end) / 2)))
    off = min(trips)[1]
    says = f"this machine and the database are {off * 1000:.0f} ms apart"
    fix = "Synchronize the clocks of both machines with NTP (chrony, systemd-timesyncd)."
    if off > CLOCKS_BAD:
        return bad("clocks", f"{says}, so the database refuses ids that this machine creates", fix)
    return warning("clocks", says, fix) if off > CLOCKS_WARN else ok("clocks", says)


def _durable(state: ServerState) -> Finding:
    if not state.safe:
        return bad(
            "durability",
            "fsync or full_page_writes is off: a crash of the server can damage or lose all data",
            "Set both to on in postgresql.conf, and reload.",
        )
    if state.commits == "off":
        return warning(
            "durability",
            "synchronous_commit is off: a crash of the server can lose acknowledged work",
            "Set it to on for this database: alter database NAME set synchronous_commit = on.",
        )
    return ok("durability", f"fsync is on, synchronous_commit is {state.commits}")


async def _vacuum(session: Session, state: ServerState) -> Finding:
    if not state.vacuums:
        return bad(
            "autovacuum",
            "off: tables grow, query plans get slow, and in the end the server refuses writes",
            "Set autovacuum and track_counts to on in postgresql.conf, and reload.",
        )
    tables = await server_state.unvacuumed(session)
    if tables:
        return warning(
            "autovacuum",
            f"off for {', '.join(tables)}",
            "In psql: alter table NAME reset (autovacuum_enabled)",
        )
    return ok("autovacuum", "on")


async def _long_transactions(session: Session) -> Finding:
    row = await server_state.longest_transaction(session, LONG)
    if row is None:
        return ok("long transactions", "none")
    return warning(
        "long transactions",
        f"{row.application_name or 'a client'} (pid {row.pid}) has had a transaction open for {row.age:.0f} s",
        "End the transaction, because vacuum cannot remove old rows while it is open: select "
        f"pg_terminate_backend({row.pid})",
    )
