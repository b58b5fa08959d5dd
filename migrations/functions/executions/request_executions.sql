-- Create executions. One that is due now is created as started if no limit covers it, or if its keys have room (find_new_slots). Each
-- other due execution is scheduled or queued at once in two cases. One is an executor's transaction (`p_fused`). The other is a
-- submit that is the whole transaction (`p_alone`) and has the locks of all keys. Otherwise it is staged as requested: a caller's
-- own transaction may stay open for long, so it locks no keys.
-- If a client submits an execution of an action that some worker of the route lacks, the execution is parked instead of staged. A
-- caller's own transaction assigns nothing to workers. request_plain_execution handles a single execution without anything to
-- decide, the usual case.
-- planner: indexes_planned_once
create or replace function request_executions(
    p_ids uuid[], p_namespaces integer[], p_definitions integer[], p_params text[], p_options text[],
    p_origins text[], p_priorities smallint[], p_not_before timestamptz[],
    p_parents uuid[], p_tasks text[], p_items integer[], p_fused boolean, p_alone boolean default false
) returns message[]
language plpgsql
as $$
declare
    v_free integer[];
    v_limited boolean;
    v_held boolean;
    v_admitted candidate[];
    v_rooms room[];
    v_locked boolean;
    v_made uuid[];
    v_ready uuid[];
    v_born_at timestamptz;
    v_due timestamptz;
    v_births birth[];
    v_messages message[] := '{}';
    r record;
begin
    if cardinality(p_ids) = 1 and p_options[1] is null and p_not_before[1] is null then
        v_messages := request_plain_execution(p_ids[1], p_namespaces[1], p_definitions[1], p_params[1], p_origins[1],
            p_priorities[1], p_parents[1], p_tasks[1], p_items[1], p_fused, p_alone);
        if v_messages is not null then
            return v_messages;
        end if;
        v_messages := '{}';
    end if;
    perform join_trees(p_ids, p_options, p_origins, p_parents);
    if p_priorities is null and p_parents is not null then
        p_priorities := inherited_priorities(p_parents);
    end if;
    -- One statement reads all of this. Between two statements, another transaction could add a limit. Then an execution that was
    -- created as started would not be sent.
    select coalesce(array_agg(id) filter (where limits = '{}'), '{}'), bool_or(limits <> '{}'), bool_or(hold is not null)
    into v_free, v_limited, v_held
    from namespace where id = any (p_namespaces);
    if v_held then
        v_free := '{}'; -- schedule_executions holds executions that a hold covers
    elsif p_fused and exists (select from paused_workflow) then
        v_free := '{}'; -- their workflow may be paused
    elsif v_limited and (p_fused or p_alone) then
        select free, rooms, locked into v_admitted, v_rooms, v_locked
        from find_new_slots(p_ids, p_namespaces, p_params, p_priorities, p_not_before, p_parents, p_definitions, p_options, p_fused);
        v_born_at := clock_timestamp();
        v_births := array(
            select case when a.id is not null then (start_status(a.kind), a.keys, v_born_at)::birth end
            from unnest(p_ids) with ordinality d (id, place) left join unnest(v_admitted) a on a.id = d.id
            order by d.place);
    end if;
    select made, ready, due into v_made, v_ready, v_due
    from create_executions(p_ids, p_namespaces, p_definitions, p_params, p_options, p_origins, p_priorities, p_not_before,
        p_parents, p_tasks, p_items, v_free, v_births, null);
    if v_due is not null then
        v_messages := timers_set(v_due);
    end if;
    for r in
        select n.kind, n.queue, n.envelope, n.lacked and not p_fused as lacked, array_agg(d.id order by d.place) as ids,
            coalesce(bool_or(d.priority <> 0), false) as prior
        from unnest(p_ids, p_namespaces, p_not_before, p_priorities)
            with ordinality as d (id, namespace_id, not_before, priority, place)
        join namespace n on n.id = d.namespace_id
        where n.id = any (v_free) and d.not_before is null
            and (cardinality(v_made) = cardinality(p_ids) or d.id = any (v_made))
        group by n.kind, n.queue, n.envelope, n.lacked and not p_fused
    loop
        v_messages := v_messages || place_ready(r.kind, r.queue, r.ids, r.envelope, r.prior, r.lacked, p_fused or p_alone);
    end loop;
    if v_admitted is not null then
        v_messages := v_messages || admit(case when cardinality(v_made) = cardinality(p_ids) then v_admitted
            else array(select c from unnest(v_admitted) c where c.id = any (v_made)) end, v_rooms, v_born_at);
    end if;
    if v_ready is null then
        return v_messages;
    elsif p_fused then
        return v_messages || schedule_executions(v_ready);
    elsif v_locked then
        return v_messages || request_slots(v_ready);
    end if;
    return v_messages || stage('execution.requested', array(select id from unnest(v_ready) id order by id), 50);
end $$;
