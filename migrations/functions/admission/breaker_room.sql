-- Return how many more executions the breaker of a key lets start. Without a row the breaker is closed, and does not bound them.
-- Before its probe it lets none start. Then it lets `allowed` executions be under way, without those that were admitted before
-- it opened. The caller holds the lock of the key.
create or replace function breaker_room(p_limit integer, p_group text) returns integer
language sql stable
as $$
    select coalesce((
        select case when b.releasing_since is null and (b.probe_at is null or b.probe_at > clock_timestamp()) then 0
            else greatest(b.allowed - (
                select count(*) from slot s join execution e on e.id = s.execution_id
                where s.limit_id = b.limit_id and s.group_value = b.group_value and s.admitted_at >= b.opened_at
                    and e.status in ('scheduled', 'running', 'canceling')), 0) end
        from breaker b where b.limit_id = p_limit and b.group_value = p_group), 2147483647)::integer
$$;
