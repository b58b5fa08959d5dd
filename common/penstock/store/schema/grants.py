"""The rights of services: the statements that grant them, and the rights that roles have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import asyncpg

from penstock.store.schema.rights import FUNCTIONS, SEQUENCES, SERVICES, TABLES
from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import rows_as


def quoted(name: str) -> str:
    """Return a name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def statements(schema: str, service: str, role: str) -> Iterator[str]:
    """Yield the statements after which a role has the rights of a service in this schema, and no others."""
    inside, to = quoted(schema), quoted(role)
    yield f"revoke create on schema {inside} from public"
    for kind in ("tables", "sequences", "functions"):
        yield f"revoke all on all {kind} in schema {inside} from {to}"
    yield f"revoke all on schema {inside} from {to}"
    yield f"grant usage on schema {inside} to {to}"
    for table, services in TABLES.items():
        if rights := services[service]:
            yield f"grant {', '.join(right.sql for right in rights)} on {inside}.{table} to {to}"
    for sequence, services_of in SEQUENCES.items():
        if service in services_of:
            yield f"grant usage on sequence {inside}.{sequence} to {to}"
    for function, services_of in FUNCTIONS.items():
        if service in services_of:
            yield f"grant execute on function {inside}.{function} to {to}"
    yield (
        f"insert into {inside}.service_role (role, service) values ({_text(role)}, {_text(service)}) "
        "on conflict (role) do update set service = excluded.service"
    )


RENEW_PARTITIONS = """
select copy_rights(p.relname::text, c.relname::text) from pg_inherits i
join pg_class p on p.oid = i.inhparent join pg_class c on c.oid = i.inhrelid
where p.relkind = 'p' and c.relkind = 'r' and pg_table_is_visible(p.oid)
"""
"""A statement that grants the rights on each partitioned table to its partitions. `revoke all on all tables` removed
them there, too."""


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def script(schema: str, roles: Mapping[str, str]) -> Iterator[str]:
    """Yield the SQL script that creates the role of each service, without a password, and grants its rights."""
    yield "begin;"
    for service, role in roles.items():
        yield f"\n-- {service}: set a password with \\password {role}"
        yield (
            f"do $$ begin create role {quoted(role)} login noinherit; "
            f"exception when duplicate_object then raise notice 'there is a role of the {service}'; end $$;"
        )
        for statement in statements(schema, service, role):
            yield f"{statement};"
    yield f"\nset local search_path = {quoted(schema)}, pg_temp;"
    yield f"{RENEW_PARTITIONS.strip()};"
    yield "commit;"


SCHEMA = "select current_schema()::text as name"
RECORDED = """
select s.role, s.service from service_role s join pg_roles r on r.rolname = s.role order by s.role
"""


async def renew(connection: asyncpg.Connection[Any]) -> None:
    """Grant every recorded role the rights that this release has for its service."""
    [schema] = await connection.fetch(SCHEMA)
    recorded = await connection.fetch(RECORDED)
    for row in recorded:
        if row["service"] in SERVICES:  # an unknown service is one of a later release
            await connection.execute(";\n".join(statements(schema["name"], row["service"], row["role"])))
    if recorded:
        await connection.fetch(RENEW_PARTITIONS)


async def give(tx: Transaction, service: str, role: str) -> None:
    """Grant a role the rights of a service, and revoke all its other rights in this schema."""
    [schema] = await tx.fetch(SCHEMA)
    for statement in statements(schema["name"], service, role):
        await tx.execute(statement)
    await tx.fetch(RENEW_PARTITIONS)


EXISTS = "select exists (select from pg_roles where rolname = $1) as there"


async def exists(tx: Session | Transaction, role: str) -> bool:
    """Return True if the server has a role of this name."""
    return bool((await tx.fetch(EXISTS, role))[0]["there"])


CREATE = "create role {role} login noinherit password {verifier}"


async def create(tx: Transaction, role: str, verifier: str) -> None:
    """Create a role that may log in. `verifier` is the hash of its password, as the server stores it."""
    await tx.execute(CREATE.format(role=quoted(role), verifier=_text(verifier)))


SET_PASSWORD = "alter role {role} password {verifier}"


async def set_password(tx: Transaction, role: str, verifier: str) -> None:
    """Set the password of an existing role. `verifier` is its hash, as the server stores it."""
    await tx.execute(SET_PASSWORD.format(role=quoted(role), verifier=_text(verifier)))


@dataclass(frozen=True, slots=True)
class ServiceRole:
    """A role that runs a service: one that `penstock roles` recorded, or one with a session now (`open`). `owner`:
    the role can do anything with the schema, as its owner, a member of the owner's role, or a superuser."""

    role: str
    service: str
    owner: bool
    open: bool


ROLES = """
with used as (
    select s.role, s.service, false as open from service_role s
    union all
    select a.usename::text, split_part(a.application_name, ':', 1), true from pg_stat_activity a
    where a.datname = current_database() and a.application_name like '%:%'
)
select u.role, u.service, bool_or(u.open) as open,
    pg_has_role(r.oid, (select n.nspowner from pg_namespace n where n.nspname = current_schema()), 'usage') as owner
from used u join pg_roles r on r.rolname = u.role where u.service = any ($1::text[])
group by u.role, u.service, r.oid order by u.service, u.role
"""


async def roles(session: Session) -> list[ServiceRole]:
    """Return the roles that services run as, as far as the reading role may see them."""
    return rows_as(ServiceRole, await session.fetch(ROLES, list(SERVICES)))


HELD = """
select c.relname::text as name, v.verb
from pg_class c cross join unnest(array['select', 'insert', 'update', 'delete', 'truncate', 'references', 'trigger']) as v (verb)
where c.relnamespace = quote_ident(current_schema())::regnamespace and c.relkind in ('r', 'p')
    and not exists (select from pg_inherits i where i.inhrelid = c.oid)
    and (has_table_privilege($1::name, c.oid, v.verb)
        or v.verb in ('select', 'insert', 'update', 'references') and has_any_column_privilege($1::name, c.oid, v.verb))
order by 1, 2
"""
CALLABLE = """
select p.proname::text as name from pg_proc p
where p.pronamespace = quote_ident(current_schema())::regnamespace
    and p.prosecdef and has_function_privilege($1::name, p.oid, 'execute')
order by 1
"""


async def excess(session: Session, service: str, role: str) -> list[str]:
    """Return the rights of a role that its service does not need, each as a text: `select on secret`."""
    held = await session.fetch(HELD, role)
    unneeded = []
    for row in held:
        needed = {right.verb for right in TABLES.get(row["name"], {}).get(service, ())}
        if row["verb"] not in needed:
            unneeded.append(f"{row['verb']} on {row['name']}")
    functions = [row["name"] for row in await session.fetch(CALLABLE, role)]
    return unneeded + [f"call {name}" for name in functions if service not in FUNCTIONS.get(name, ())]
