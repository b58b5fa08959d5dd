"""The locks of keys are taken in one order, whatever a transaction does: whoever holds one and wants a lower one could wait for
somebody who holds that and wants the first. Each transaction of a busy installation is watched by the database itself. (Not
here: a turn of workflows may end some tasks and start others, and so takes keys twice; PostgreSQL breaks a circle of those, and
the turn is tried again.)"""

from __future__ import annotations

import asyncio
from typing import Any

from penstock import Limit, RetryPolicy, action
from tests.flows.installation import Installation

WATCH = """
create table out_of_order (held integer, wanted integer[], path text);
create or replace function lock_keys(p_keys limit_key[]) returns void
language plpgsql
as $$
declare
    v_mine integer[] := array(select l.objid::integer from pg_locks l where l.pid = pg_backend_pid()
        and l.locktype = 'advisory' and l.classid = 7 and l.objsubid = 2 and l.objid < 2048);
    v_new integer[] := array(select distinct key_lock(k) from unnest(p_keys) k except select unnest(v_mine));
    v_path text;
begin
    if (select max(m) from unnest(v_mine) m) > (select min(n) from unnest(v_new) n) then
        get diagnostics v_path = pg_context;
        insert into out_of_order select max(m), v_new, v_path from unnest(v_mine) m;
    end if;
    perform lock_placement();
    perform pg_advisory_xact_lock(7, x.lock) from (select distinct key_lock(k) as lock from unnest(p_keys) k order by 1) x;
end $$;
"""

BY = tuple(f"lock.by_{n}" for n in range(4))


def limited(name: str) -> Any:
    @action(
        pack="lock",
        ref=name,
        limits=[Limit(3), Limit(1, by="customer")],
        retry=RetryPolicy(max_attempts=2, initial_delay=0.01),
    )
    async def work(customer: int = 0, fails: bool = False) -> int:
        await asyncio.sleep(0.01)
        if fails:
            raise ConnectionError("not now")
        return customer

    return work


ACTIONS = [limited(name) for name in BY]


async def test_no_transaction_takes_the_locks_of_keys_out_of_their_order(house: Installation) -> None:
    connection = await (await house.parts()).database.connect()
    await connection.execute(WATCH)
    await house.start(*ACTIONS)
    for turn in range(8):
        for ref in BY:
            ids = await house.client.start_many(
                ref, [{"customer": n % 5, "fails": n % 7 == 0} for n in range(12)]
            )
        await house.client.cancel(*ids[turn % 2 :: 2])
    await house.until(
        "select 1 where not exists (select from execution where finished_at is null)", seconds=90
    )
    found = await connection.fetch("select path, count(*) from out_of_order group by path")
    await connection.close()
    assert not found, "\n".join(row["path"] for row in found)
