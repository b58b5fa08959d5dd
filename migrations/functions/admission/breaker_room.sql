-- Return how many more executions the breaker of a key lets start. Without a row the breaker is closed, and does not bound
-- them. Before its probe it lets none start, nor within `probe` after a probe that began to wait and keeps its slots. Then it
-- lets `allowed` executions be under way, without those that were admitted before it opened. A breaker that counts running
-- calls (`counts_running`) takes each for a failure until it has ended: what has failed and what is under way are together
-- never more than `failures`. The caller holds the lock of the key.
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
