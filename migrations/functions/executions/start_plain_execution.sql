-- Create one execution as started, if there is nothing to decide. The caller has checked these conditions:
-- - No limit and no hold covers the execution.
-- - It has neither options nor times nor labels.
-- - Its kind is action or workflow.
-- - No status is announced or subscribed to.
-- With `p_assigns`, an action is assigned to a worker that has a permit. The execution is created as running, and claimed by that
-- worker. An assignment to a waiting take has the claim id of the take. Everything else is staged on its queue. An execution that
-- exists (the same id, or the same child of a workflow) is left alone.
-- Statements for one row cost half of those for several. The function writes the history itself, and tells the triggers so by the
-- setting `penstock.moves`. The triggers accept it only from the owner, so the function has the owner's rights.
-- planner: lookups_planned_once
create or replace function start_plain_execution(
    p_id uuid, p_kind text, p_queue text, p_name text, p_namespace integer, p_definition integer, p_params jsonb, p_origin jsonb,
    p_priority smallint, p_parent uuid, p_task text, p_item integer, p_assigns boolean, p_ordered boolean
) returns message[]
language plpgsql security definer
as $$
declare
    v_actor constant text := current_setting('application_name');
    v_status constant text := start_status(p_kind);
    v_moves text; -- an assignment runs no query, which `perform` would
    v_permit permit;
    v_ready_at timestamptz;
    v_message bigint;
    v_messages message[];
begin
    if p_assigns and p_kind = 'action' then
        v_permit := (take_permits(p_queue, p_definition, 1))[1];
    end if;
    v_moves := set_config('penstock.moves', 'written', true);
    insert into execution (id, status, attempt, claim, namespace_id, definition_id, priority, parent, task, item)
    values (p_id, case when v_permit.worker is null then v_status else 'running' end, (v_permit.worker is not null)::integer,
        v_permit.worker, p_namespace, p_definition, p_priority, p_parent, p_task, p_item)
    on conflict do nothing returning ready_at into v_ready_at;
    v_moves := set_config('penstock.moves', '', true);
    if v_ready_at is null then
        insert into permit select (v_permit).* where v_permit.worker is not null;
        return '{}';
    end if;
    insert into payload (execution_id, params, origin) values (p_id, p_params, p_origin);
    insert into live (execution_id) values (p_id);
    if v_permit.worker is not null then
        insert into history (execution_id, at, old, new, attempt, actor, ready_at) values
            (p_id, clock_timestamp(), null, 'requested', 0, v_actor, v_ready_at),
            (p_id, clock_timestamp() + interval '1 microsecond', 'requested', v_status, 0, v_actor, null),
            (p_id, clock_timestamp() + interval '2 microseconds', v_status, 'running', 1, v_permit.actor, null);
        v_permit.claim := coalesce(v_permit.claim, gen_random_uuid());
        insert into claim (id, worker, executions, assigned) values (v_permit.claim, v_permit.worker, array[p_id], true)
        on conflict (id) do update set executions = claim.executions || excluded.executions;
        return notify_workers(array[(coalesce(v_permit.holder, v_permit.worker), v_permit.channel, v_permit.claim, json_build_array(
            json_build_array(p_id, 1, 0, p_name, p_definition, 0, p_params::text, null, null, p_parent, root_of(p_parent), p_task,
                (p_origin -> 'trace')::text)))::assignment], p_queue);
    end if;
    insert into history (execution_id, at, old, new, attempt, actor, ready_at) values
        (p_id, clock_timestamp(), null, 'requested', 0, v_actor, v_ready_at),
        (p_id, clock_timestamp() + interval '1 microsecond', 'requested', v_status, 0, v_actor, null);
    insert into outbox (queue, ids) values (p_queue, array[p_id]) returning id into v_message;
    v_messages := array[(v_message, p_queue, array[p_id])::message];
    if p_kind = 'action' and (p_ordered or p_priority <> 0) then
        perform join_backlog(p_queue, array[p_id]);
    end if;
    return v_messages;
end $$;
