-- No limit is added, removed or grouped anew until the transaction ends. `penstock apply` takes the same lock alone.
-- Where several limits meet, every transaction takes their locks in this order: rows of executions, the placement, the keys.
-- A transaction with keys never waits for a row: it skips rows that other transactions hold. So there is no deadlock.
-- Advisory locks of class 7: -1 is the placement, -2 the workers, -3 the partitions, the others are keys.
create or replace function lock_placement() returns void
language sql
as $$
    select pg_advisory_xact_lock_shared(7, -1)
$$;
