-- Release held executions. With `p_staged`, no hold covers them any more, and those under limits are staged for the executors.
-- Otherwise a hold is being released step by step. Then all of the executions are scheduled at once, although the hold still
-- covers their namespaces.
-- planner: lookups
create or replace function let_go(p_ids uuid[], p_staged boolean) returns message[]
language plpgsql
as $$
declare
    v_ready uuid[];
    v_timed uuid[];
    v_messages message[] := '{}';
    v_started integer;
begin
    perform from execution where id = any (p_ids) order by id for no key update;
    delete from held_execution where execution_id = any (p_ids);
    with moved as (
        update execution e set reason = case when e.ends_as is not null then e.reason end, since = clock_timestamp(), not_before = null
        where e.id = any (p_ids) and e.status = 'requested' and e.not_before = held_until()
            and not exists (select from paused_workflow p where p.execution_id = e.parent)
        returning e.id, e.timed
    )
    select coalesce(array_agg(id order by id), '{}'), array_agg(id) filter (where timed) into v_ready, v_timed from moved;
    if v_timed is not null then
        perform set_clocks(v_timed);
    end if;
    if p_staged then
        return schedule_due(v_ready);
    end if;
    select s.messages, s.started into v_messages, v_started from start_executions(v_ready) s;
    if v_started < cardinality(v_ready) then
        v_messages := v_messages || request_slots(v_ready);
    end if;
    return v_messages;
end $$;
