"""Gates inside the database's own functions: before each of their statements a session waits until it is let on.

The functions are those of the migrations, with a call written in front of every statement that reads or writes. A gate
counts on a sequence, which no transaction undoes; so it is known who waits where, and nobody is let on by accident.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import asyncpg

ACTORS = 3
GATE = """
create function gate() returns void language plpgsql as $$
declare
    v_actor text := current_setting('gate.actor', true);
    v_here bigint;
    v_to bigint;
    v_fail bigint;
begin
    if coalesce(v_actor, '') = '' then
        return;
    end if;
    v_here := nextval('gate_at_' || v_actor);
    loop
        execute format('select t.last_value, f.last_value from gate_to_%s t, gate_fail_%s f', v_actor, v_actor)
        into v_to, v_fail;
        exit when v_to >= v_here;
        perform pg_sleep(0.0002);
    end loop;
    if v_fail = v_here * 2 then
        raise exception 'could not serialize access' using errcode = '40001';
    elsif v_fail = v_here * 2 + 1 then
        raise exception 'deadlock detected' using errcode = '40P01';
    end if;
end $$
"""
STATEMENT = re.compile(
    r"(with|update|insert|delete|select|perform|return query|for|if|v_\w+ := array\(select)\b"
)
OPENS = re.compile(r"(;|\bthen|\belse|\bloop|\bbegin)$", re.IGNORECASE)
READS = re.compile(r"\b(with|select|from|update|insert|delete|perform)\b")
OURS = """
select p.oid, p.proname, pg_get_functiondef(p.oid) as source from pg_proc p
join pg_language l on l.oid = p.prolang
where p.pronamespace = 'public'::regnamespace and l.lanname = 'plpgsql' and p.prorettype <> 'trigger'::regtype
    and p.proname not in ('make_partitions', 'split_default_partition', 'drop_partitions', 'lock_keys', 'is_away', 'gate')
    and p.provolatile = 'v'
"""


async def install(connection: asyncpg.Connection[asyncpg.Record]) -> int:
    """Put gates into every function of this database. Returns how many there are."""
    for actor in range(ACTORS):
        for name in ("at", "to", "fail"):
            await connection.execute(f"create sequence gate_{name}_{actor} minvalue 0")
            await connection.execute(f"select setval('gate_{name}_{actor}', 0)")
    await connection.execute(GATE)
    count = 0
    for row in await connection.fetch(OURS):
        gated = "\n".join(_gated(row["source"]))
        count += gated.count("perform gate();")
        await connection.execute(gated)
    return count


def _gated(source: str) -> Iterator[str]:
    """The source with a gate before each statement, but the first: whoever calls has just passed one."""
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
