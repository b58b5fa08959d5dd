"""What a scene asks its database: what is left, what runs, and which invariants are violated."""

from __future__ import annotations

from penstock.store.invariants import INVARIANTS

KEPT = "definition|catalog|namespace|concurrency_limit|legal_move|cluster|process|schedule|penstock_migration"
TABLES = f"""
select string_agg(format('delete from %I;', c.relname), ' ') from pg_class c
where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
    and c.relname !~ '^({KEPT})$'
"""
OPEN = "select id::text, status, task from execution where finished_at is null"
RUNNING = "select id, status, claim from execution where status in ('running', 'canceling') and claim is not null order by id"
LEFT = """
select (select count(*) from slot) as slots, (select count(*) from waiter) as waiters, (select count(*) from lane) as lanes,
    (select count(*) from live) as live, (select count(*) from claim) as claims
"""
VIOLATED = " union all ".join(
    f"select '{one.name}' as name, array({one.violations}) as violations" for one in INVARIANTS
)
"""What `penstock check` asks, in one statement."""
REMEMBERED = "select * from remembered_tasks($1, 64)"
