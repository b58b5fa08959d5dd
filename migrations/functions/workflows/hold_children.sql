-- Hold the tasks of paused workflows that no worker has begun. The tasks are requested again, free their slots, and keep the
-- instants at which they became ready, and so their places. Also pause the workflows inside.
-- The caller holds the workflows' locks. An earlier transaction inserted the rows of `paused_workflow`. The rows are inserted
-- again here, in case a resume has deleted them. A transaction that schedules a task later sees these rows. A transaction that
-- was about to schedule a task finds `not_before` changed.
-- planner: lookups
create or replace function hold_children(p_ids uuid[], p_reason text) returns message[]
language plpgsql
as $$
declare
    v_messages message[];
    v_held uuid[];
    v_inside uuid;
begin
    insert into paused_workflow (execution_id) select unnest(p_ids) on conflict do nothing;
    perform from execution where parent = any (p_ids) and status in ('requested', 'queued', 'scheduled')
    order by id for no key update;
    with moved as (
        update execution e set status = 'requested', not_before = held_until(),
            reason = case when e.ends_as is null then 'its workflow is paused' else e.reason end
        from namespace n
        where e.parent = any (p_ids) and n.id = e.namespace_id and (e.status in ('requested', 'queued', 'scheduled')
            -- a workflow that was started and has not begun
            or e.status = 'running' and n.kind = 'workflow'
                and not exists (select from workflow w where w.execution_id = e.id))
        returning e.id
    )
    select array_agg(id order by id) into v_held from moved;
    v_messages := settle_moves(null, v_held, held_by(v_held));
    for v_inside in select w.execution_id from execution e join workflow w on w.execution_id = e.id
                    where e.parent = any (p_ids) and e.status = 'running' order by 1
    loop
        v_messages := v_messages
            || command_workflow(v_inside, 'pause', null, null, 'the workflow around it', p_reason);
    end loop;
    return v_messages;
end $$;
