-- Creates executions. Those that need not wait for an instant are scheduled at once (`fused`: whoever calls is an executor), or
-- else started where no limit covers them, and staged as requested where one does. Arrays shorter than p_ids are padded with
-- null. What is part of something that is traced is traced with it. Those that exist already (the same id, or the same child of
-- a workflow) are left alone: another delivery of the same message was first.
-- planner: indexes_planned_once
create or replace function request_executions(
    p_ids uuid[], p_namespaces integer[], p_definitions integer[], p_params text[], p_options text[],
    p_origins text[], p_priorities smallint[], p_not_before timestamptz[],
    p_parents uuid[], p_tasks text[], p_items integer[], p_fused boolean
) returns message[]
language plpgsql
as $$
declare
    v_new uuid[];
    v_ready uuid[];
    v_due timestamptz;
    v_told message[] := '{}';
begin
    with made as (
        insert into execution (id, status, namespace_id, definition_id, priority, not_before, ready_at, parent, task, item)
        select d.id, 'requested', d.namespace_id, d.definition_id, coalesce(d.priority, 0), d.not_before,
            greatest(clock_timestamp(), d.not_before), d.parent, d.task, coalesce(d.item, -1)
        from unnest(p_ids, p_namespaces, p_definitions, p_priorities, p_not_before, p_parents, p_tasks, p_items)
            as d (id, namespace_id, definition_id, priority, not_before, parent, task, item)
        on conflict do nothing
        returning id, not_before
    )
    select array_agg(id), array_agg(id) filter (where not_before is null) into v_new, v_ready from made;
    if v_new is null then
        return '{}';
    end if;

    insert into payload (execution_id, params, options, origin)
    select d.id, d.params::jsonb, d.options::jsonb,
        case when t.trace is null then d.origin::jsonb else d.origin::jsonb || jsonb_build_object('trace', t.trace) end
    from unnest(p_ids, p_params, p_options, p_origins, p_parents) as d (id, params, options, origin, parent)
    left join (select p.execution_id, (p.origin -> 'trace') - 'links' as trace from payload p
               where p.execution_id = any (p_parents) and p.origin ? 'trace') t on t.execution_id = d.parent
    where cardinality(v_new) = cardinality(p_ids) or d.id = any (v_new);
    insert into live (execution_id) select unnest(v_new);
    v_due := set_times(v_new, p_ids, p_definitions, p_options, p_not_before);
    if cardinality(v_new) > coalesce(cardinality(v_ready), 0) then
        with made as (
            insert into timer (due_at, kind, execution_id)
            select not_before, 'ready', id from execution where id = any (v_new) and not_before is not null returning due_at
        )
        select least(v_due, min(due_at)) into v_due from made;
    end if;

    if v_due is not null then
        v_told := timers_set(v_due);
    end if;
    if v_ready is null then
        return v_told;
    elsif p_fused then
        return v_told || schedule_executions(v_ready);
    elsif exists (select from namespace n
                  where n.id = any (array(select distinct unnest(p_namespaces))) and n.limits = '{}') then
        return v_told || start_or_request(v_ready);
    else
        -- Limits cover all of them: an executor asks for their slots, so no row is looked at again here.
        return v_told || stage('execution.requested', array(select id from unnest(v_ready) id order by id), 50);
    end if;
end $$;
