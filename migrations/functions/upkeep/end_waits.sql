-- End the executions among `p_ids` that have waited too long. With `p_kind` = `start` they wait for a worker, and with `queued`
-- for the slot of a limit. The time counts from `since` in the execution's row. So a timer of an earlier attempt or wait ends
-- nothing, since `since` is later by then.
-- planner: lookups
create or replace function end_waits(p_ids uuid[], p_kind text) returns message[]
language plpgsql
as $$
declare
    v_from text[] := case p_kind when 'start' then array['requested', 'scheduled'] else array['queued'] end;
    v_late uuid[];
begin
    perform from execution where id = any (p_ids) and finished_at is null order by id for no key update;
    v_late := array(
        select e.id from execution e
        join definition d on d.id = e.definition_id
        left join payload p on p.execution_id = e.id
        where e.id = any (p_ids) and e.not_before is distinct from held_until()
            and coalesce(e.since, e.ready_at) <= clock_timestamp() - make_interval(secs => timeout_of(p.options, d.body,
                case p_kind when 'start' then 'schedule_to_start' else 'queued' end, null)));
    return (end_executions(v_late, v_from, 'timeout', case p_kind when 'start' then 'no worker started it in time'
        else 'its limits did not let it in in time' end, null)).messages;
end $$;
