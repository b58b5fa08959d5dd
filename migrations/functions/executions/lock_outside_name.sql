-- Lock the id of something outside until the transaction ends. A transaction that settles waits for this id, and a transaction
-- that begins such a wait, run one after the other.
create or replace function lock_outside_name(p_tenant text, p_name text) returns void
language sql
as $$
    select pg_advisory_xact_lock(hashtextextended('outside ' || p_tenant || ' ' || p_name, 7))
$$;
