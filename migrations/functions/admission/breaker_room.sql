-- Return how many more executions the breaker of a key lets start. The caller holds the lock of the key.
-- - A closed breaker has no row. It bounds nothing, unless it has `counts_running`.
-- - An open breaker returns 0 until its next probe is due, and for the interval `probe` after the attempt of an execution that
--   now waits and keeps its slots. Otherwise at most `allowed` executions that were admitted since it opened may be under way.
-- - With `counts_running`, open or closed, each running attempt counts as a failure until it ends: recent failures and running
--   attempts together are at most `failures`.
create or replace function breaker_room(p_limit integer, p_group text) returns integer
language sql stable
as $$
    select case when b.limit_id is null and not l.counts_running then 2147483647
        when b.limit_id is not null and b.releasing_since is null
            and (b.probe_at is null or b.probe_at > clock_timestamp() or exists (
                select from slot s join execution e on e.id = s.execution_id and e.status = 'waiting'
                join attempt t on t.execution_id = e.id and t.attempt = e.attempt and t.at > clock_timestamp() - l.probe
                where s.limit_id = p_limit and s.group_value = p_group and s.admitted_at >= b.opened_at)) then 0
        else greatest(least(b.allowed, l.failures - case when l.counts_running then (
                select count(*) from breaker_attempt a
                where a.limit_id = p_limit and a.group_value = p_group and a.failed
                    and a.ended_at > clock_timestamp() - l.within) end) - (
            select count(*) from slot s join execution e on e.id = s.execution_id
            where s.limit_id = p_limit and s.group_value = p_group
                and s.admitted_at >= coalesce(b.opened_at, '-infinity')
                and e.status in ('scheduled', 'running', 'canceling')), 0) end::integer
    from (
        select (breaker ->> 'failures')::integer as failures, make_interval(secs => (breaker ->> 'within')::float8) as within,
            make_interval(secs => (breaker ->> 'probe')::float8) as probe, coalesce((breaker ->> 'counts_running')::boolean, false) as counts_running
        from concurrency_limit where id = p_limit) l
    left join breaker b on b.limit_id = p_limit and b.group_value = p_group
$$;
