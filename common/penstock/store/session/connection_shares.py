"""The number of connections that PostgreSQL has for executors and workers, and the share of each process."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.store.session.database import FEWEST, Session
from penstock.store.session.rows import rows_as

SPARE = 10
"""The part of the connections that is left to clients, to operators, and to services that start: one of SPARE."""


@dataclass(frozen=True, slots=True)
class ConnectionRoom:
    """The narrowest connection limit: that of the server, the database or the role. `room` is the number of allowed
    connections, and `used` the number of open ones. `foreign_connections` of them belong to no executor or worker of
    this installation. `services` is the number of live executors and workers."""

    room: int
    used: int
    foreign_connections: int
    services: int

    def share(self, place: int) -> int:
        """Return the connections of the process with `place` processes before it. All get the same number, and the
        first ones get the remainder."""
        available = max(0, self.room - self.foreign_connections - max(1, self.room // SPARE))
        quotient, remainder = divmod(available, max(1, self.services))
        return quotient + (place < remainder)

    @property
    def free_at_the_fewest(self) -> int:
        """Return the free connections that remain once each executor and worker keeps only its minimum."""
        return self.room - self.foreign_connections - self.services * FEWEST


# A role without further rights does not see the type of the backend of another role's session, so an unknown type counts as
# a client's. The text has no comments of SQL, since BEAT puts it on one line.
ROOM = """
with session as (
    select s.datname, s.usesysid, exists (
        select from process p
        where s.datname = current_database() and s.application_name = left(p.kind || ':' || p.name, 63)) as ours
    from pg_stat_activity s
    where s.usesysid is not null and coalesce(s.backend_type, 'client backend') = 'client backend'
        and s.pid <> pg_backend_pid()
), bound as (
    select current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
            - coalesce(current_setting('reserved_connections', true)::integer, 0) as room,
        count(*)::integer as used, (count(*) filter (where not ours))::integer as foreign_connections
    from session
    union all
    select d.datconnlimit, count(s)::integer, (count(s) filter (where not s.ours))::integer
    from pg_database d left join session s on s.datname = d.datname
    where d.datname = current_database() and d.datconnlimit >= 0
    group by d.oid, d.datconnlimit
    union all
    select r.rolconnlimit, count(s)::integer, (count(s) filter (where not s.ours))::integer
    from pg_roles r left join session s on s.usesysid = r.oid
    where r.rolname = session_user and r.rolconnlimit >= 0
    group by r.oid, r.rolconnlimit
)
select b.room, b.used, b.foreign_connections, (select count(*)::integer from process where state <> 'dead') as services
from bound b order by b.room - b.foreign_connections limit 1
"""


async def read(session: Session) -> ConnectionRoom:
    """Return the room under the narrowest limit of connections: that of the server, of the database or of the role. The
    session that asks is not counted."""
    return rows_as(ConnectionRoom, await session.fetch(ROOM))[0]
