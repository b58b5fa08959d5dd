-- Settle at most `p_limit` executions that have waited too long for something outside, or for its heartbeat: waiting -> timeout.
-- A durable function is woken and cleans up first. An execution that another transaction has locked, perhaps to complete it, is
-- skipped. `expired` are the executions that this call of the function handled.
create or replace function expire_outside(p_limit integer, out messages message[], out expired uuid[])
language plpgsql
as $$
declare
    v_told uuid[];
    v_messages message[];
    v_ids uuid[];
    r record;
begin
    messages := '{}';
    select coalesce(array_agg(x.id), '{}') into expired from (
        select id from execution
        where status = 'waiting' and id = any (array(
            select w.execution_id from outside_wait w join execution e on e.id = w.execution_id
            where w.due_at <= clock_timestamp() and e.status = 'waiting' order by w.due_at limit p_limit))
        order by id for no key update skip locked
    ) x;
    if expired = '{}' then
        return;
    end if;
    perform lock_keys(array(select distinct k from execution e cross join unnest(e.keys) k where e.id = any (expired)));
    for r in
        with late as (
            update outside_wait w set due_at = null from outside_wait was
            where w.execution_id = any (expired) and was.execution_id = w.execution_id
            returning w.execution_id,
                case when was.due_at < was.deadline_at or was.deadline_at is null
                    then format('no heartbeat came for %s s', was.heartbeat) else 'nothing outside completed it in time' end as reason
        )
        select reason, array_agg(execution_id) as ids from late group by reason order by reason
    loop
        select t.messages, t.told into v_messages, v_told from tell_functions(r.ids, 'timeout', r.reason) t;
        v_ids := array(select unnest(r.ids) except select unnest(v_told));
        messages := messages || v_messages || count_timeouts(v_ids, r.reason)
            || (end_executions(v_ids, array['waiting'], 'timeout', r.reason, null)).messages;
    end loop;
end $$;
