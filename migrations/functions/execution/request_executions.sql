-- Creates executions. Those that no limit covers and that need not wait for an instant are started with it. Of the others, those
-- that need not wait are scheduled at once (`fused`: whoever calls is an executor), or else staged as requested: whoever asks for
-- their slots may have to wait for the locks of limits' keys, and who creates them may be a caller's transaction that stays open
-- for long. Where it is a client who submits, what some workers of its route lack is not sent to any of them.
-- planner: indexes_planned_once
create or replace function request_executions(
    p_ids uuid[], p_namespaces integer[], p_definitions integer[], p_params text[], p_options text[],
    p_origins text[], p_priorities smallint[], p_not_before timestamptz[],
    p_parents uuid[], p_tasks text[], p_items integer[], p_fused boolean
) returns message[]
language plpgsql
as $$
declare
    -- Read once: a limit may come to be between two statements, and what was born started must be sent.
    v_free integer[] := array(select id from namespace where id = any (p_namespaces) and limits = '{}');
    v_made uuid[];
    v_ready uuid[];
    v_due timestamptz;
    v_kind text;
    v_queue text;
    v_size integer;
    v_lacked boolean;
    v_started uuid[];
    v_messages message[] := '{}';
begin
    if p_fused and exists (select from paused_workflow) then
        v_free := '{}'; -- their parent may be paused
    end if;
    select made, ready, due into v_made, v_ready, v_due
    from create_executions(p_ids, p_namespaces, p_definitions, p_params, p_options, p_origins, p_priorities, p_not_before,
        p_parents, p_tasks, p_items, v_free, null);
    if v_due is not null then
        v_messages := timers_set(v_due);
    end if;
    for v_kind, v_queue, v_size, v_lacked, v_started in
        select n.kind, n.queue, n.envelope, n.lacked and not p_fused, array_agg(d.id order by d.place)
        from unnest(p_ids, p_namespaces, p_not_before) with ordinality as d (id, namespace_id, not_before, place)
        join namespace n on n.id = d.namespace_id
        where n.id = any (v_free) and d.not_before is null
            and (cardinality(v_made) = cardinality(p_ids) or d.id = any (v_made))
        group by n.kind, n.queue, n.envelope, n.lacked and not p_fused
    loop
        v_messages := v_messages
            || case when v_lacked then park_lacked(v_started, v_queue) else send_on(v_kind, v_queue, v_started, v_size) end;
    end loop;
    if v_ready is null then
        return v_messages;
    elsif p_fused then
        return v_messages || schedule_executions(v_ready);
    end if;
    return v_messages || stage('execution.requested', array(select id from unnest(v_ready) id order by id), 50);
end $$;
