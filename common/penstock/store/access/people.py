"""The rows of people with a password: their roles, sessions, known addresses and failed sign-ins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import first_as, rows_as


@dataclass(frozen=True, slots=True)
class Person:
    """A person, without the password. `roles[i]` applies to `tenants[i]`; an empty tenant means all."""

    name: Annotated[str, Field(description="The user name.")]
    roles: Annotated[
        list[str],
        Field(description="The roles. Each applies to the tenant with the same index in `tenants`."),
    ]
    tenants: Annotated[list[str], Field(description="The tenants; an empty text means all tenants.")]
    created_by: str
    created_at: datetime
    totp_since: Annotated[
        datetime | None,
        Field(description="The instant since which a second factor is required; null if it is not."),
    ]
    sessions: Annotated[int, Field(description="The number of open sessions.")]


SHOWN = """
select p.name, coalesce(r.roles, '{}') as roles, coalesce(r.tenants, '{}') as tenants, p.created_by, p.created_at, p.totp_since,
    (select count(*) from person_session s
    where s.person = p.id and s.expires_at > clock_timestamp() and not s.needs_code) as sessions
from person p
left join lateral (
    select array_agg(role order by tenant, role) as roles,
        array_agg(tenant order by tenant, role) as tenants
    from person_role where person = p.id
) r on true
"""
LIST = f"{SHOWN} order by p.name"
ONE = f"{SHOWN} where p.name = $1"


async def listed(session: Session) -> list[Person]:
    return rows_as(Person, await session.fetch(LIST))


async def named(session: Session | Transaction, name: str) -> Person | None:
    return first_as(Person, await session.fetch(ONE, name))


CREATE = """
insert into person (id, name, password, created_by) values ($1, $2, $3, $4) on conflict (name) do nothing returning id
"""


async def create(tx: Transaction, id: UUID, name: str, password: str, by: str) -> bool:
    """Insert a person. Return False if a person of that name exists."""
    return bool(await tx.fetch(CREATE, id, name, password, by))


FORGET_ROLES = "delete from person_role where person = (select id from person where name = $1)"
GIVE_ROLES = """
insert into person_role (person, role, tenant)
select p.id, u.role, u.tenant from person p, unnest($2::text[], $3::text[]) as u (role, tenant) where p.name = $1
on conflict do nothing
"""


async def set_roles(tx: Transaction, name: str, roles: Sequence[str], tenants: Sequence[str]) -> None:
    """Replace all roles of a person: `roles[i]` applies to `tenants[i]`."""
    await tx.execute(FORGET_ROLES, name)
    await tx.execute(GIVE_ROLES, name, list(roles), list(tenants))


SET_PASSWORD = "update person set password = $2 where name = $1 returning id"
IMPROVE_PASSWORD = "update person set password = $2 where name = $1"
END_SESSIONS = "delete from person_session where person = (select id from person where name = $1)"


async def set_password(tx: Transaction, name: str, password: str) -> bool:
    """Set a password, and end all sessions. Return False if no person has that name."""
    exists = bool(await tx.fetch(SET_PASSWORD, name, password))
    await end_sessions(tx, name)
    return exists


async def improve_password(tx: Transaction, name: str, new: str) -> None:
    """Replace the hash of a password by `new`, a hash of the same password by the present method. The caller has
    locked the person's row."""
    await tx.execute(IMPROVE_PASSWORD, name, new)


async def end_sessions(tx: Transaction, name: str) -> int:
    """End all sessions of a person, and return their number."""
    return int((await tx.execute(END_SESSIONS, name)).rpartition(" ")[2])


DELETE = """
with forgotten as (delete from secret where tenant = '' and name = 'totp:' || $1)
delete from person where name = $1 returning id
"""


async def delete(tx: Transaction, name: str) -> None:
    """Delete a person with all sessions and the second factor."""
    await tx.fetch(DELETE, name)


PASSWORD = "select password from person where name = $1"


async def password_of(session: Session, name: str) -> str | None:
    rows = await session.fetch(PASSWORD, name)
    return rows[0]["password"] if rows else None


CHANGE_PASSWORD = "update person set password = $2 where name = $1 and password = $3 returning id"


async def change_password(tx: Transaction, name: str, password: str, verified: str) -> bool:
    """Set a password. Return False if the person is gone, or has another hash than `verified`."""
    return bool(await tx.fetch(CHANGE_PASSWORD, name, password, verified))


BEGIN = """
insert into person_session (digest, person, expires_at, address, browser, needs_code)
select $2, id, clock_timestamp() + make_interval(secs => case when needs_code then $7::float8 else $3::float8 end), $5, $6,
    needs_code
from (
    select id, $7::float8 is not null and totp_since is not null as needs_code
    from person where name = $1 and password = coalesce($4, password) for no key update
) held
returning expires_at, needs_code
"""
REMEMBER_ADDRESS = """
insert into known_address (person, address) select id, $2 from person where name = $1
on conflict (person, address) do update set seen_at = clock_timestamp()
"""
FORGET_ADDRESSES = "delete from known_address where seen_at < clock_timestamp() - interval '90 days'"
CLEAN = """
delete from person_session
where expires_at < clock_timestamp() or seen_at < clock_timestamp() - make_interval(secs => $1)
"""


@dataclass(frozen=True, slots=True)
class NewSession:
    """A new session. With `needs_code` it grants no access until the code of the second factor is given."""

    expires_at: datetime
    needs_code: bool


async def begin_session(
    tx: Transaction,
    name: str,
    digest: bytes,
    seconds: float,
    idle: float,
    verified: str | None,
    address: str,
    browser: str,
    seconds_for_code: float | None,
) -> NewSession | None:
    """Begin a session from this address and browser, for `seconds`. Delete sessions that are over or were idle for
    `idle` seconds.

    If the person has a second factor, the session grants no access yet and lasts `seconds_for_code`. With
    `seconds_for_code` None, no second factor is required.

    Return None if the person is gone, or has another hash than `verified`. The statement locks the person's row:
    another transaction may change the password and end all sessions between the verification and this statement.
    """
    await tx.execute(CLEAN, idle)
    rows = await tx.fetch(BEGIN, name, digest, seconds, verified, address, browser, seconds_for_code)
    return first_as(NewSession, rows)


async def remember_address(tx: Transaction, name: str, address: str) -> None:
    """Record that the person signed in from this address. Delete addresses that were not used for 90 days."""
    await tx.execute(FORGET_ADDRESSES)
    await tx.execute(REMEMBER_ADDRESS, name, address)


KEEP_ID_TOKEN = "update person_session set id_token = $2 where digest = $1"
ID_TOKEN = "select id_token from person_session where digest = $1"


async def keep_id_token(tx: Transaction, digest: bytes, id_token: str) -> None:
    """Store the ID token of the identity provider with the session that it began."""
    await tx.execute(KEEP_ID_TOKEN, digest, id_token)


async def id_token_of(session: Session, digest: bytes) -> str | None:
    """Return the ID token that a session began with; None if it began with a password, or is over."""
    rows = await session.fetch(ID_TOKEN, digest)
    return rows[0]["id_token"] if rows else None


END = """
delete from person_session s using person p where s.digest = $1 and p.id = s.person returning p.name
"""


async def end_session(session: Session | Transaction, digest: bytes) -> str | None:
    """End a session. Return the name of its person; None where there is no such session."""
    return next((str(row["name"]) for row in await session.fetch(END, digest)), None)


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session of a person, as its owner sees it. `seen_at` is exact to a minute."""

    id: UUID
    digest: bytes
    began_at: datetime
    seen_at: datetime
    expires_at: datetime
    address: str
    browser: str


SESSIONS = """
select s.id, s.digest, s.created_at as began_at, s.seen_at, s.expires_at, s.address, s.browser
from person_session s join person p on p.id = s.person
where p.name = $1 and not s.needs_code and s.expires_at > clock_timestamp()
    and s.seen_at > clock_timestamp() - make_interval(secs => $2)
order by s.created_at desc, s.id
"""


async def sessions_of(session: Session | Transaction, name: str, idle: float) -> list[OpenSession]:
    """Return the open sessions of a person, newest first. A session is over after `idle` seconds without use."""
    return rows_as(OpenSession, await session.fetch(SESSIONS, name, idle))


END_ONE_OF = "delete from person_session where id = $2 and person = (select id from person where name = $1) returning id"
END_OTHERS_OF = (
    "delete from person_session where digest <> $2 and person = (select id from person where name = $1)"
)


async def end_session_of(tx: Transaction, name: str, id: UUID) -> bool:
    """End one session of a person. Return False if the person has none with this id."""
    return bool(await tx.fetch(END_ONE_OF, name, id))


async def end_other_sessions(tx: Transaction, name: str, digest: bytes) -> int:
    """End all sessions of a person except one, and return their number."""
    return int((await tx.execute(END_OTHERS_OF, name, digest)).rpartition(" ")[2])


SEEN = """
with seen as (
    update person_session set seen_at = clock_timestamp()
    where digest = $1 and seen_at < clock_timestamp() - interval '1 minute' and expires_at > clock_timestamp()
        and seen_at > clock_timestamp() - make_interval(secs => $2)
)
select p.name, coalesce(array_agg(r.role) filter (where r.role is not null), '{}') as roles,
    coalesce(array_agg(r.tenant) filter (where r.role is not null), '{}') as tenants
from person_session s join person p on p.id = s.person left join person_role r on r.person = p.id
where s.digest = $1 and not s.needs_code and s.expires_at > clock_timestamp()
    and s.seen_at > clock_timestamp() - make_interval(secs => $2)
group by p.name
"""


@dataclass(frozen=True, slots=True)
class SessionOwner:
    """The owner of a session, with the present roles: `roles[i]` applies to `tenants[i]`."""

    name: str
    roles: list[str]
    tenants: list[str]


async def session_owner(session: Session, digest: bytes, idle: float) -> SessionOwner | None:
    """Return the owner of an open session, and note its use. Return None if the session is unknown, over, or was not
    used for `idle` seconds."""
    return first_as(SessionOwner, await session.fetch(SEEN, digest, idle))


NEEDS_CODE = """
select p.name from person_session s join person p on p.id = s.person
where s.digest = $1 and s.needs_code and s.expires_at > clock_timestamp()
"""
END_NEEDING_CODE = "delete from person_session where digest = $1 and needs_code and expires_at > clock_timestamp() returning id"


async def name_that_needs_code(session: Session, digest: bytes) -> str | None:
    """Return the name of the person with the sign-in that waits for a code; None if the sign-in is over."""
    rows = await session.fetch(NEEDS_CODE, digest)
    return rows[0]["name"] if rows else None


async def end_session_that_needs_code(tx: Transaction, digest: bytes) -> bool:
    """End a session that waits for a code. Return False if it is over already, for instance by a new password."""
    return bool(await tx.fetch(END_NEEDING_CODE, digest))


FAILURES = """
select count(*) filter (where name = $1 and address = $2)::integer as both,
    count(*) filter (where name = $1)::integer as name, count(*) filter (where address = $2)::integer as address,
    exists (
        select from known_address k join person p on p.id = k.person where p.name = $1 and k.address = $2
    ) as is_known_address
from login_failure where (name = $1 or address = $2) and at > clock_timestamp() - make_interval(secs => $3)
"""
OLD_FAILURES = "delete from login_failure where at < clock_timestamp() - make_interval(secs => $1)"
NOTE_FAILURE = "insert into login_failure (id, name, address) values ($1, $2, $3)"
FORGET_FAILURE = "delete from login_failure where id = $1"


@dataclass(frozen=True, slots=True)
class Failures:
    """The numbers of sign-ins that failed or are under way: of this name from this address (`both`), of this name, and
    from this address. `is_known_address`: the person of this name has signed in from this address before."""

    both: int
    name: int
    address: int
    is_known_address: bool


async def note_failure(session: Session, id: UUID, name: str, address: str, seconds: float) -> Failures:
    """Count a sign-in as failed, until forget_failure, and return all counts. Delete failures that are older than
    `seconds`. The row is committed before the counts are read, so that concurrent sign-ins see each other."""
    await session.fetch(OLD_FAILURES, seconds)
    await session.fetch(NOTE_FAILURE, id, name, address)
    [row] = await session.fetch(FAILURES, name, address, seconds)
    return Failures(**row)


async def forget_failure(session: Session, id: UUID) -> None:
    """Delete the failure of a sign-in that succeeded."""
    await session.fetch(FORGET_FAILURE, id)
