-- Return a hint for executors if this transaction has written a wake row of these keys that is due before they look by themselves
-- (timers_set). The transaction of a client or a worker writes such a row where a rate permits the next start, or a breaker opens.
-- Under other limits a wake row is for a lane that waits already, and executors look every 2 s then.
create or replace function wakes_set(p_keys limit_key[]) returns message[]
language sql
as $$
    select timers_set(min(w.at)) from unnest(p_keys) k
    join concurrency_limit l on l.id = k.limit_id and (l.rate_count is not null or l.breaker is not null)
    join wake w on w.limit_id = k.limit_id and w.group_value = k.group_value and w.xmin = pg_current_xact_id()::xid
$$;
