-- Insert new executions with their payloads and timers. By default an execution is requested. An execution is created as started
-- if it has no `p_not_before` and its namespace is in `p_free`, which no limit covers. An entry in `p_births` gives it a status
-- and slots instead. With `p_worker`, all are created as running, claimed by that worker. Arrays shorter than `p_ids` count as
-- padded with nulls. A child inherits the trace and the labels of its parent (label_executions).
-- An execution that exists (the same id, or the same child of a workflow) is left alone, since another delivery of the message
-- was first. `made` are the executions that this call of the function created. `ready` are those of them that are requested and
-- due. `due` is the instant of the first timer.
-- planner: indexes_planned_once
create or replace function create_executions(
    p_ids uuid[], p_namespaces integer[], p_definitions integer[], p_params text[], p_options text[],
    p_origins text[], p_priorities smallint[], p_not_before timestamptz[],
    p_parents uuid[], p_tasks text[], p_items integer[], p_free integer[], p_births birth[], p_worker uuid,
    out made uuid[], out ready uuid[], out due timestamptz
)
language plpgsql
as $$
declare
    v_timed uuid[];
begin
    -- There are few namespaces, so looking one up for each row would be slower. A join would lose the order of the arrays, which
    -- is that of the instants.
    with free as materialized (
        select id, start_status(kind) as status from namespace where id = any (p_free)
    ), written as (
        insert into execution (id, status, keys, attempt, claim, namespace_id, definition_id, priority, not_before, ready_at,
            parent, task, item)
        select d.id,
            case when p_worker is not null then 'running'
                when d.not_before is null
                    then coalesce(d.status, (select f.status from free f where f.id = d.namespace_id), 'requested')
                else 'requested' end,
            d.keys, (p_worker is not null)::integer, p_worker,
            d.namespace_id, d.definition_id, coalesce(d.priority, 0), d.not_before,
            coalesce(d.born_at, greatest(clock_timestamp(), d.not_before)), d.parent, d.task, coalesce(d.item, -1)
        from unnest(p_ids, p_namespaces, p_definitions, p_priorities, p_not_before, p_parents, p_tasks, p_items, p_births)
            as d (id, namespace_id, definition_id, priority, not_before, parent, task, item, status, keys, born_at)
        on conflict do nothing
        returning id, status, not_before
    )
    select array_agg(id), array_agg(id) filter (where status = 'requested' and not_before is null)
    into made, ready from written;
    if made is null then
        return;
    end if;

    insert into payload (execution_id, params, options, origin)
    select d.id, d.params::jsonb, d.options::jsonb,
        case when t.trace is null then d.origin::jsonb else d.origin::jsonb || jsonb_build_object('trace', t.trace) end
    from unnest(p_ids, p_params, p_options, p_origins, p_parents) as d (id, params, options, origin, parent)
    left join (select p.execution_id, (p.origin -> 'trace') - 'links' as trace from payload p
               where p.execution_id = any (p_parents) and p.origin ? 'trace') t on t.execution_id = d.parent
    where cardinality(made) = cardinality(p_ids) or d.id = any (made);
    insert into live (execution_id) select unnest(made);
    if exists (select from definition f where f.id = any (p_definitions) and f.body ?| '{run_labels,searchable}')
        or exists (select from unnest(p_options) o where o like '%"labels"%')
        or exists (select from label where execution_id = any (p_parents))
    then
        perform label_executions(made, p_ids, p_namespaces, p_definitions, p_params, p_options, p_parents);
    end if;
    -- Most definitions have no timeouts, so a first query checks for any. `total` bounds the whole execution, from the instant at
    -- which it is ready. `late` comes from `warn_after` (raise_late). An execution with a bound on its waits for a worker or for a
    -- limit is marked `timed`.
    if exists (select from definition f where f.id = any (p_definitions)
               and (f.body ?| '{timeouts,warn_after}' or (f.kind = 'workflow' and f.body ? 'timeout')))
        or exists (select from unnest(p_options) o where o like '%"timeouts"%')
    then
        with set_timers as (
            insert into timer (due_at, kind, execution_id)
            select greatest(clock_timestamp(), d.not_before) + make_interval(secs => t.seconds), t.kind, d.id
            from unnest(p_ids, p_definitions, p_options, p_not_before) as d (id, definition_id, options, not_before)
            join definition f on f.id = d.definition_id
            cross join lateral (values
                ('total', timeout_of(d.options::jsonb, f.body, 'total',
                    case when f.kind = 'workflow' then (f.body ->> 'timeout')::double precision end)),
                ('late', (f.body ->> 'warn_after')::double precision)) t (kind, seconds)
            where t.seconds is not null and d.id = any (made)
            on conflict do nothing
            returning due_at
        )
        select min(due_at) into due from set_timers;
        with bounded as (
            update execution e set timed = true
            from unnest(p_ids, p_definitions, p_options) as d (id, definition_id, options)
            join definition f on f.id = d.definition_id
            where e.id = any (made) and e.id = d.id and (timeout_of(d.options::jsonb, f.body, 'schedule_to_start', null) is not null
                or timeout_of(d.options::jsonb, f.body, 'queued', null) is not null)
            returning e.id
        )
        select array_agg(id) into v_timed from bounded;
        if v_timed is not null then
            perform set_clocks(v_timed);
            due := (select min(due_at) from timer where execution_id = any (v_timed));
        end if;
    end if;
    if exists (select from unnest(p_not_before) d where d is not null) then
        with delayed as (
            insert into timer (due_at, kind, execution_id)
            select e.not_before, 'ready', e.id from execution e where e.id = any (made) and e.not_before is not null
            returning due_at
        )
        select least(due, min(due_at)) into due from delayed;
    end if;
end $$;
