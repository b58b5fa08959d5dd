"""The check that PostgreSQL has connections for one more executor or worker."""

from __future__ import annotations

from penstock.operate.doctor.finding import Finding, bad, ok, warning
from penstock.settings import Settings
from penstock.store.session import connection_shares
from penstock.store.session.database import FEWEST, Session


async def finding(session: Session, settings: Settings) -> Finding:
    """Check that one more executor or worker would get its minimum of connections, once each process has closed those
    above its own minimum. Behind a pooler a process waits for a connection."""
    room = await connection_shares.read(session)
    says = f"{room.used} of {room.room} connections are in use"
    free = room.free_at_the_fewest
    if settings.database_pooler or free >= FEWEST:
        return ok("connections", says)
    needed = room.services * FEWEST
    says += (
        f": {room.services} executors and workers need {needed} of them, and other programs have "
        f"{room.foreign_connections}"
    )
    fix = (
        "Raise max_connections (or the limit of the database or the role), run fewer services, use "
        "PgBouncer (PENSTOCK_DATABASE_POOLER=true), or let APIs have fewer connections "
        "(PENSTOCK_DATABASE_CONNECTIONS)."
    )
    if free < 0:
        return bad("connections", f"{says}, and {-free} more are needed", fix)
    return warning(
        "connections",
        f"{says}. Another executor or worker needs {FEWEST}, and only {free} would be free",
        fix,
    )
