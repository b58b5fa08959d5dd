-- No limit is added, removed or grouped anew until the transaction ends. `penstock apply` takes the same lock alone.
-- Where several limits meet, everybody takes their locks in this order: rows of executions, the placement, the keys.
-- Whoever holds keys never waits for a row: it skips those that others hold. So nobody waits in a circle.
-- Advisory locks of class 7: -1 is the placement, -2 the workers, -3 the partitions, the others are keys.
create or replace function lock_placement() returns void
language sql
as $$
    select pg_advisory_xact_lock_shared(7, -1)
$$;
