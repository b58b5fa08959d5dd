-- Release the held tasks of resumed workflows, and resume the workflows inside. A task is requested at once. If its retry or
-- delay is not due yet, it waits for that instant.
-- planner: lookups
create or replace function release_children(p_ids uuid[], p_reason text) returns message[]
language plpgsql
as $$
declare
    v_messages message[];
    v_ready uuid[];
    v_timed uuid[];
    v_inside uuid;
begin
    delete from paused_workflow where execution_id = any (p_ids);
    perform from execution where parent = any (p_ids) and status = 'requested' order by id for no key update;
    with moved as (
        update execution e set reason = case when e.ends_as is not null then e.reason end, since = clock_timestamp(),
            not_before = (select min(t.due_at) from timer t where t.execution_id = e.id and t.kind = 'ready')
        where e.parent = any (p_ids) and e.status = 'requested' and e.not_before = held_until()
        returning e.id, e.not_before, e.timed
    )
    select array_agg(id order by id) filter (where not_before is null), array_agg(id) filter (where timed)
    into v_ready, v_timed from moved;
    if v_timed is not null then
        perform set_clocks(v_timed);
    end if;
    v_messages := schedule_due(v_ready);
    for v_inside in select w.execution_id from execution e join workflow w on w.execution_id = e.id
                    where e.parent = any (p_ids) and e.status = 'running' order by 1
    loop
        v_messages := v_messages
            || command_workflow(v_inside, 'resume', null, null, 'the workflow around it', p_reason);
    end loop;
    return v_messages;
end $$;
