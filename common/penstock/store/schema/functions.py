"""The functions of the database: one file each below migrations/functions, applied again when the file has changed.
migrations/README.md explains how to change one. This module does not need alembic: services check with it that their
functions are applied."""

from __future__ import annotations

import hashlib
import re
import sys
import tomllib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import asyncpg

from penstock.errors import ConfigurationError, NotMigrated

PROFILE = re.compile(r"^-- planner: (\S+)$", re.MULTILINE)
SETTING = re.compile(r"[a-z0-9_]+")

APPLIED = "select name, digest, release from penstock_function"
OPEN = """
select p.proname::text as name from pg_proc p
where p.pronamespace = (select oid from pg_namespace where nspname = current_schema()) and p.prosecdef and (
    not exists (
        select from unnest(p.proconfig) c where replace(c, '"', '') = format('search_path=%s, pg_temp', current_schema()))
    or exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0))
"""
"""A query of the functions with the owner's rights that resolve names in another schema, or that every role may call: the
schema was renamed, or restored without its rights. With `quote_all_identifiers` the server quotes each name of a path."""
TRIGGERS = """
select distinct t.tgname::text as name from pg_trigger t join pg_class c on c.oid = t.tgrelid
where c.relnamespace = (select oid from pg_namespace where nspname = current_schema())
"""
SEVERAL = """
select proname from pg_proc where pronamespace = quote_ident(current_schema())::regnamespace and proname = any ($1::name[])
group by proname having count(*) > 1 order by proname
"""
VALID = """
select case when l.lanname = 'sql' then fmgr_sql_validator(p.oid) else plpgsql_validator(p.oid) end
from pg_proc p join pg_language l on l.oid = p.prolang
where p.pronamespace = quote_ident(current_schema())::regnamespace and p.proname = any ($1::name[])
"""
RECORD = """
insert into penstock_function (name, digest, release)
select d.name, d.digest, $3 from unnest($1::text[], $2::text[]) as d (name, digest)
on conflict (name) do update
set digest = excluded.digest, release = excluded.release, applied_at = clock_timestamp()
"""

Fetch: TypeAlias = Callable[..., Awaitable[Iterable[Any]]]
"""A callable that runs a statement and returns its rows: `fetch` of a session, a transaction or a connection."""


TRIGGER = re.compile(r"^create or replace trigger (\w+)", re.MULTILINE)
"""The beginning of a file's triggers, after its function. Creating a trigger locks out the writers of its table until
the transaction ends."""

DEFINER = re.compile(r"^language \w+.* security definer$", re.MULTILINE)
"""The line of a file that gives its function the rights of the schema's owner."""
FENCE = """
do $$ begin
    execute format('alter function {name} set search_path = %I, pg_temp', current_schema());
    execute 'revoke execute on function {name} from public';
end $$
"""
"""Statements for a function with the owner's rights: it resolves names in the owner's schema only, and only roles
with a grant may call it."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function as its file declares it: the SQL text that creates it, and the planner settings of its statements."""

    name: str
    text: str
    settings: Mapping[str, str]

    @property
    def definer(self) -> bool:
        """Return True if the function has the rights of the schema's owner, whichever role calls it."""
        return DEFINER.search(self.text) is not None

    @property
    def triggers(self) -> list[str]:
        """Return the names of the triggers that the file creates."""
        return TRIGGER.findall(self.text)

    @property
    def digest(self) -> str:
        parts = [self.text, *(f"{name} = {value}" for name, value in self.settings.items())]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def folder() -> Path:
    """Return the folder of the migrations: beside the code in a checkout, below share/ in an installation. Raises
    ConfigurationError if neither exists."""
    for path in (Path(__file__).parents[4] / "migrations", Path(sys.prefix) / "share/penstock/migrations"):
        if (path / "env.py").exists():
            return path
    raise ConfigurationError("the migrations are not installed", hint="Install Penstock again with pip.")


def release() -> str:
    """Return the version of Penstock that runs."""
    return version("penstock")


def declared() -> dict[str, Function]:
    """Return the functions that this release needs, by name. Raises ConfigurationError if two files declare one, or a
    planner profile is wrong."""
    home = folder() / "functions"
    profiles = tomllib.loads((home / "planner.toml").read_text())
    functions: dict[str, Function] = {}
    for path in sorted(home.rglob("*.sql")):
        if path.stem in functions:
            raise ConfigurationError(
                f"two files declare the function {path.stem}",
                hint="Functions are known by their names alone: give one of them another.",
            )
        text = path.read_text()
        named = PROFILE.findall(text)
        if len(named) > 1 or any(name not in profiles for name in named):
            raise ConfigurationError(
                f"{path.name} names more than one planner profile, or an unknown one: {', '.join(named)}",
                hint="Name at most one profile of migrations/functions/planner.toml.",
            )
        functions[path.stem] = Function(path.stem, text, profiles[named[0]] if named else {})
    return functions


async def missing(fetch: Fetch) -> list[Function]:
    """Return the functions that the database does not have as this release declares them. None are missing if a later
    release has applied its own: replicas of this release run on those."""
    rows = list(await fetch(APPLIED))
    if any(_number(row["release"]) > _number(release()) for row in rows):
        return []
    open_functions = {row["name"] for row in await fetch(OPEN)}
    applied = {row["name"]: row["digest"] for row in rows if row["name"] not in open_functions}
    return [function for function in declared().values() if applied.get(function.name) != function.digest]


async def missing_triggers(fetch: Fetch) -> list[str]:
    """Return the triggers of this release's functions that the tables do not have. A restore creates triggers last, so
    they are missing while it is under way."""
    existing = {row["name"] for row in await fetch(TRIGGERS)}
    return [name for function in declared().values() for name in function.triggers if name not in existing]


async def check(fetch: Fetch) -> None:
    """Raise NotMigrated if functions that this release calls have not been applied yet, or their triggers are missing."""
    try:
        names = [function.name for function in await missing(fetch)]
    except asyncpg.UndefinedTableError:
        raise NotMigrated("the database has no schema yet", hint="Run `penstock migrate`.") from None
    if names:
        raise NotMigrated(
            f"{len(names)} functions in the database are missing or not of this version ({_some(names)})",
            hint="Run `penstock migrate`.",
        )
    if triggers := await missing_triggers(fetch):
        raise NotMigrated(
            f"{len(triggers)} triggers in the database are missing ({_some(triggers)})",
            hint="Wait until the restore of the database has ended. If there is none, restore a complete dump.",
        )


async def apply(connection: asyncpg.Connection[asyncpg.Record]) -> list[str]:
    """Apply missing functions, in the caller's transaction, which holds the lock of migrations. Return their names.
    Raises ConfigurationError if one of them has another signature than before."""
    due = await missing(connection.fetch)
    if not due:
        return []
    names = [function.name for function in due]
    await connection.execute(
        "set local check_function_bodies = off"
    )  # a function may call one that is created later
    for function in due:
        try:
            await connection.execute(TRIGGER.split(function.text, maxsplit=1)[0])
        except asyncpg.InvalidFunctionDefinitionError as error:
            raise _changed_signature(function.name, str(error)) from error
        except asyncpg.PostgresError as error:
            error.add_note(f"in {function.name}.sql")
            raise
    for row in await connection.fetch(SEVERAL, names):
        raise _changed_signature(row["proname"], "there is one of that name with other parameters")
    for function in due:
        if function.settings:
            await connection.execute(_planned(function))
        if function.definer:
            await connection.execute(FENCE.format(name=function.name))
    await connection.execute("set local check_function_bodies = on")
    for name in names:
        try:
            await connection.fetch(VALID, [name])
        except asyncpg.PostgresError as error:
            error.add_note(f"in {name}.sql")
            raise
    await connection.execute(RECORD, names, [function.digest for function in due], release())
    for function in due:
        if trigger := TRIGGER.search(function.text):
            await connection.execute(function.text[trigger.start() :])
    return names


def _planned(function: Function) -> str:
    for word in (*function.settings, *function.settings.values()):
        if not SETTING.fullmatch(word):
            raise ConfigurationError(
                f"planner.toml: {word} is not a setting", hint="Settings are plain words."
            )
    assignments = " ".join(f"set {name} = {value}" for name, value in function.settings.items())
    return f"alter function {function.name} {assignments}"


def _changed_signature(name: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"the function {name} has another signature than the one that is there: {why}",
        hint="Give it a new name (its file too): replicas of the release before may still call the old one. "
        "migrations/README.md tells more.",
    )


def _number(name: str) -> tuple[int, ...]:
    """Return a version as numbers that can be compared. A suffix such as that of a release candidate is ignored."""
    match = re.match(r"\d+(\.\d+)*", name)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
