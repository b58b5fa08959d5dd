-- Settle at most `p_limit` executions that have waited too long for something outside, or for its heartbeat: waiting -> timeout.
-- A durable function is woken and cleans up first. An execution that another transaction has locked, perhaps to complete it, is
-- skipped. `expired` are the executions that this call handled.
create or replace function expire_outside(p_limit integer, out messages message[], out expired uuid[])
language plpgsql
as $$
declare
    v_told uuid[];
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
    update outside_wait set due_at = null where execution_id = any (expired);
    select t.messages, t.told into messages, v_told
    from tell_functions(expired, 'timeout', 'nothing outside completed it in time') t;
    messages := messages || count_timeouts(array(select unnest(expired) except select unnest(v_told)),
        'nothing outside completed it in time');
    messages := messages || (end_executions(array(select unnest(expired) except select unnest(v_told)), array['waiting'],
        'timeout', 'nothing outside completed it in time', null)).messages;
end $$;
