"""The settings and the state of the PostgreSQL server."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.store.session.database import Session
from penstock.store.session.rows import first_as, rows_as


@dataclass(frozen=True, slots=True)
class ServerState:
    """The version of the server, as text and as a `number` such as 160003, and settings of the server."""

    version: str
    number: int
    read_only: bool
    """The server accepts no writes."""
    frozen: bool
    """Sessions are read-only by default. Penstock's sessions override that."""
    safe: bool
    """A crash of the server loses no commit (`fsync`, `full_page_writes`)."""
    commits: str
    """The value of synchronous_commit."""
    vacuums: bool


STATE = """
select current_setting('server_version') as version, current_setting('server_version_num')::integer as number,
    pg_is_in_recovery() or current_setting('transaction_read_only')::boolean as read_only,
    exists (select from pg_db_role_setting s, unnest(s.setconfig) as setting
        where s.setdatabase in (0, (select oid from pg_database where datname = current_database()))
            and s.setrole in (0, (select oid from pg_roles where rolname = current_user))
            and setting ~ '^default_transaction_read_only=(on|true|yes|1)$') as frozen,
    current_setting('fsync')::boolean and current_setting('full_page_writes')::boolean as safe,
    current_setting('synchronous_commit') as commits,
    current_setting('autovacuum')::boolean and current_setting('track_counts')::boolean as vacuums
"""


async def read(session: Session) -> ServerState:
    return rows_as(ServerState, await session.fetch(STATE))[0]


EPOCH = "select extract(epoch from clock_timestamp())::float8 as seconds"


async def seconds_since_epoch(session: Session) -> float:
    """Return the server's clock, in seconds since 1970."""
    return float((await session.fetch(EPOCH))[0]["seconds"])


UNVACUUMED = """
select c.relname::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = current_schema() and 'autovacuum_enabled=false' = any(c.reloptions)
"""


async def unvacuumed(session: Session) -> list[str]:
    """Return the tables of the schema for which autovacuum is off."""
    return [row["name"] for row in await session.fetch(UNVACUUMED)]


@dataclass(frozen=True, slots=True)
class LongTransaction:
    """A session with a transaction that has been open for `age` seconds."""

    pid: int
    application_name: str | None
    age: float


LONGEST = """
select pid, application_name, extract(epoch from clock_timestamp() - xact_start)::float8 as age from pg_stat_activity
where xact_start < clock_timestamp() - make_interval(secs => $1) and pid <> pg_backend_pid()
    and backend_type = 'client backend' and datname = current_database()
order by xact_start limit 1
"""


async def longest_transaction(session: Session, seconds: float) -> LongTransaction | None:
    """Return the session with the oldest transaction, if that has been open for more than `seconds`."""
    return first_as(LongTransaction, await session.fetch(LONGEST, seconds))


@dataclass(frozen=True, slots=True)
class ConnectionPath:
    """The path of a connection to the server: encrypted (`tls`), from the server's own machine (`local`), or neither."""

    tls: bool
    local: bool


PATH = """
select coalesce((select ssl from pg_stat_ssl where pid = pg_backend_pid()), false) as tls,
    inet_client_addr() is null or inet_client_addr() <<= '127.0.0.0/8' or host(inet_client_addr()) = '::1' as local
"""


async def connection_path(session: Session) -> ConnectionPath:
    """Return the path of this connection to the server. Behind a pooler, it is that of the pooler's connection."""
    return rows_as(ConnectionPath, await session.fetch(PATH))[0]
