"""A watch in the database whether transactions take the locks of keys in one order. A session that holds one and
wants a lower one could wait for a session that holds that and wants the first: a deadlock, given time and bad luck.
The watch needs neither."""

from __future__ import annotations

from penstock.store.session.database import Session

WATCH = (
    "create table out_of_order (path text)",
    """
create or replace function lock_keys(p_keys limit_key[]) returns void
language plpgsql
as $$
declare
    v_mine integer[] := array(select l.objid::integer from pg_locks l where l.pid = pg_backend_pid()
        and l.locktype = 'advisory' and l.classid = 7 and l.objsubid = 2 and l.objid < 2147483648);
    v_new integer[] := array(select distinct key_lock(k) from unnest(p_keys) k except select unnest(v_mine));
    v_path text;
begin
    if (select max(m) from unnest(v_mine) m) > (select min(n) from unnest(v_new) n) then
        get diagnostics v_path = pg_context;
        insert into out_of_order values (v_path);
    end if;
    perform lock_placement();
    perform pg_advisory_xact_lock(7, x.lock) from (select distinct key_lock(k) as lock from unnest(p_keys) k order by 1) x;
end $$
""",
)
FOUND = "select path, count(*) as count from out_of_order group by path order by 2 desc"


async def watch(session: Session) -> None:
    """From now on."""
    for statement in WATCH:
        await session.fetch(statement)


async def out_of_order(session: Session) -> list[str]:
    """From where keys were locked out of order, as the database's stack of calls; and how often."""
    return [f"{row['count']} times, from {row['path']}" for row in await session.fetch(FOUND)]
