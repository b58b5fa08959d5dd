-- Set the outcome `timeout` of attempts that wait for something outside and are about to end as timeout. Count them for the
-- breakers of their keys. The caller has locked the rows, and ends the executions in the same transaction.
-- planner: lookups
create or replace function count_timeouts(p_ids uuid[], p_reason text) returns message[]
language plpgsql
as $$
declare
    v_limited uuid[];
begin
    with settled as (
        update attempt a set outcome = 'timeout', error = jsonb_build_object('type', 'timeout', 'message', p_reason)
        from execution e join outside_wait w on w.execution_id = e.id and w.attempt = e.attempt and w.settled_at is null
        where e.id = any (p_ids) and e.status = 'waiting' and a.execution_id = e.id and a.attempt = e.attempt and a.outcome = 'waiting'
        returning e.id, e.keys
    )
    select array_agg(id) into v_limited from settled where keys is not null;
    if v_limited is null then
        return '{}';
    end if;
    perform lock_keys(keys_around(array(
        select distinct k from execution e cross join unnest(e.keys) k where e.id = any (p_ids))));
    return count_outside(v_limited);
end $$;
