"""The gates inside the database's own functions: before each of their statements a session waits until it is let on.

The functions are those of the migrations, with a call written in front of every statement that reads or writes. A
session that comes to a gate says so: a NOTICE arrives at once, in the midst of a statement. It waits for an advisory
lock that the stage holds, so that no polling is needed. Gates are counted by a sequence, which no transaction undoes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import asyncpg

ACTORS = 3
GATES, FAILS = 1001, 2001
"""Classes of the advisory locks of the first session: (GATES, n) is held until it may pass its nth gate, (FAILS, n) while
its next one is to raise RAISES[n]."""
RAISES = ("40001", "40P01")
GATE = f"""
create function gate() returns void language plpgsql as $$
declare
    v_actor integer := nullif(current_setting('gate.actor', true), '')::integer;
    v_here integer;
begin
    if v_actor is null then
        return;
    end if;
    v_here := nextval('gate_' || v_actor);
    raise notice 'gate %', v_here;
    perform pg_advisory_lock_shared({GATES} + v_actor, v_here);
    perform pg_advisory_unlock_shared({GATES} + v_actor, v_here);
    if not pg_try_advisory_lock_shared({FAILS} + v_actor, 0) then
        raise exception 'could not serialize access' using errcode = '{RAISES[0]}';
    end if;
    perform pg_advisory_unlock_shared({FAILS} + v_actor, 0);
    if not pg_try_advisory_lock_shared({FAILS} + v_actor, 1) then
        raise exception 'deadlock detected' using errcode = '{RAISES[1]}';
    end if;
    perform pg_advisory_unlock_shared({FAILS} + v_actor, 1);
end $$
"""
STATEMENT = re.compile(
    r"(with|update|insert|delete|select|perform|return query|for|if|v_\w+ := array\(select)\b"
    r"|(return|(v_)?messages :=) .*((?<!array)\(|v_messages$)"
)
OPENS = re.compile(r"(;|\bthen|\belse|\bloop|\bbegin)$", re.IGNORECASE)
READS = re.compile(
    r"\b(with|select|from|update|insert|delete|perform)\b|\b(return|messages :=) |v_messages := "
)
OURS = """
select p.oid, p.proname, pg_get_functiondef(p.oid) as source from pg_proc p
join pg_language l on l.oid = p.prolang
where p.pronamespace = 'public'::regnamespace and l.lanname = 'plpgsql' and p.prorettype <> 'trigger'::regtype
    and p.proname not in ('make_partitions', 'make_table_partitions', 'split_default_partition', 'drop_partition', 'lock_keys',
        'is_away', 'gate')
    and p.provolatile = 'v'
"""
LATER_DAYS = """
do $$ declare v_name text; begin
    for v_name in select inhrelid::regclass from pg_inherits join pg_class on oid = inhrelid
        where relkind = 'r' and relname ~ '_[0-9]{8}$' and right(relname, 8) > to_char(now() + interval '1 day', 'YYYYMMDD')
    loop
        execute format('drop table %s', v_name);
    end loop;
end $$
"""


async def install(connection: asyncpg.Connection[asyncpg.Record]) -> int:
    """Put gates into every function of this database. Returns how many there are."""
    for actor in range(ACTORS):
        await connection.execute(f"create sequence gate_{actor}")
    await connection.execute(GATE)
    count = 0
    for row in await connection.fetch(OURS):
        gated = "\n".join(_gated(row["source"]))
        count += gated.count("perform gate();")
        await connection.execute(gated)
    return count


def _gated(source: str) -> Iterator[str]:
    """Return the source with a gate before each statement but the first: the caller has just passed one."""
    body, open, passed = False, False, 0
    for line in source.splitlines():
        text = line.strip()
        code = text.split("--", 1)[0].strip()
        if body and open and STATEMENT.match(code) and (READS.search(code) or code.endswith(" in")):
            if passed:
                yield f"{line[: len(line) - len(line.lstrip())]}perform gate();"
            passed += 1
        yield line
        if text.lower() == "begin":
            body = True
        if code:
            open = bool(OPENS.search(code))
