-- Lock the placement in shared mode until the transaction ends, so that no limit is added, removed or regrouped meanwhile.
-- `penstock apply` takes the same lock exclusively.
-- Every transaction takes its locks in this order: rows of executions, the placement, keys. A transaction that holds keys never
-- waits for a row: it skips rows that other transactions have locked. So there is no deadlock. Advisory locks of class 7 with a
-- negative number have these meanings: -1 is the placement, -2 the workers, -3 the partitions, -5 the notifications of workers.
-- All other numbers are keys.
create or replace function lock_placement() returns void
language sql
as $$
    select pg_advisory_xact_lock_shared(7, -1)
$$;
