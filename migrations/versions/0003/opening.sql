-- A row is looked up for each that is named (`offset 0`): these functions are planned while tables are empty, and a join
-- would then read the whole table for each of them later.

-- Those of these workflows that run get their row, if they have none yet.
create function make_workflows(p_ids uuid[]) returns void
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
as $$
begin
    insert into workflow (execution_id, definition_id, tenant, depth, rerun)
    select e.id, e.definition_id, split_part(n.name, '::', 1), coalesce((p.origin ->> 'depth')::smallint, 0),
        case when p.origin ? 'rerun_of' then p.origin end
    from execution e
    cross join lateral (select n.name, n.queue from namespace n where n.id = e.namespace_id offset 0) n
    cross join lateral (select p.origin from payload p where p.execution_id = e.id offset 0) p
    where e.id = any (p_ids) and e.status = 'running' and n.queue = 'workflow.started'
    on conflict do nothing;
end $$;

-- Locks workflows until the transaction ends, and reads those of them that run as the last holder of the lock left
-- them. With p_create, those that start get their row first. Parameters come along where they are small: most tasks
-- read them.
create function open_workflows(p_ids uuid[], p_create boolean) returns table (
    execution_id uuid, definition_id integer, depth smallint, tenant text, head text, rerun text, stops smallint,
    stop_status text, stop_reason text, created_at timestamptz, params text, context text
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
as $$
begin
    perform lock_workflows(p_ids);
    if p_create then
        perform make_workflows(p_ids);
    end if;
    return query
        select w.execution_id, w.definition_id, w.depth, w.tenant, w.head::text, w.rerun::text, w.stops,
            w.stop_status, w.stop_reason, e.created_at,
            case when pg_column_size(p.params) < 2000 then p.params::text end,
            case when pg_column_size(p.params) < 2000 then (p.options -> 'context')::text end
        from workflow w
        cross join lateral (select e.status, e.created_at from execution e where e.id = w.execution_id offset 0) e
        cross join lateral (select p.params, p.options from payload p where p.execution_id = w.execution_id offset 0) p
        where w.execution_id = any (p_ids) and e.status = 'running';
end $$;

-- Of executions that have ended: those that are children or that something follows (columns up to p_followed), and then
-- the workflows of the children, locked and read. One round trip for what every step of a workflow begins with. They are
-- told with that: what follows an end (`followed`) starts for the one delivery that finds it untold.
create function open_parents(p_ids uuid[]) returns table (
    id uuid, status text, parent uuid, task text, item integer, followed boolean,
    execution_id uuid, definition_id integer, depth smallint, tenant text, head text, rerun text, stops smallint,
    stop_status text, stop_reason text, created_at timestamptz, params text, context text
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
as $$
#variable_conflict use_column
declare
    v_told uuid[];
    v_parents uuid[];
begin
    -- Another delivery of the same ends waits here, and finds none. (The index is read in order.)
    with gone as (delete from untold u where u.execution_id = any (p_ids) returning u.execution_id)
    select coalesce(array_agg(g.execution_id), '{}') into v_told from gone g;
    return query
        select e.id, e.status, e.parent, e.task, e.item,
            d.body ?| array['on_success', 'on_failure'] and e.id = any (v_told),
            null::uuid, null::integer, null::smallint, null::text, null::text, null::text, null::smallint,
            null::text, null::text, null::timestamptz, null::text, null::text
        from execution e cross join lateral (select d.body from definition d where d.id = e.definition_id offset 0) d
        where e.id = any (p_ids) and e.finished_at is not null
            and (e.parent is not null or d.body ?| array['on_success', 'on_failure'] and e.id = any (v_told))
        order by e.parent, e.finished_at, e.id;
    if found then
        select array_agg(distinct e.parent) into v_parents
        from execution e where e.id = any (p_ids) and e.parent is not null and e.finished_at is not null;
    end if;
    if v_parents is not null then
        return query
            select null::uuid, null::text, null::uuid, null::text, null::integer, null::boolean, w.*
            from open_workflows(v_parents, false) w;
    end if;
end $$;

create function task_records(p_ids uuid[], p_tasks integer[]) returns table (execution_id uuid, task integer, record text)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
as $$
begin
    return query
        select t.execution_id, t.task, t.record::text
        from unnest(p_ids, p_tasks) as x (id, task)
        cross join lateral (select * from workflow_task w where w.execution_id = x.id and w.task = x.task offset 0) t;
end $$;

-- Writes what was decided: the state of workflows, of their tasks, and what was published. The caller holds the locks.
create function write_workflows(
    p_ids uuid[], p_heads text[],
    p_of uuid[], p_tasks integer[], p_failing boolean[], p_records text[],
    p_by uuid[], p_writers integer[], p_names text[], p_values text[]
) returns void
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = on set enable_mergejoin = off set enable_nestloop = off
as $$
begin
    update workflow w set head = x.head::jsonb from unnest(p_ids, p_heads) as x (id, head)
    where w.execution_id = any (p_ids) and w.execution_id = x.id;
    if p_of <> '{}' then
        insert into workflow_task as t (execution_id, task, failing, record)
        select x.id, x.task, x.failing, x.record::jsonb
        from unnest(p_of, p_tasks, p_failing, p_records) as x (id, task, failing, record)
        on conflict (execution_id, task) do update set failing = excluded.failing, record = excluded.record;
    end if;
    if p_by <> '{}' then
        insert into workflow_variable (execution_id, writer, name, value)
        select x.id, x.writer, x.name, x.value::jsonb
        from unnest(p_by, p_writers, p_names, p_values) as x (id, writer, name, value)
        on conflict (execution_id, writer, name) do update set value = excluded.value;
    end if;
end $$;

-- Creates the executions of tasks and schedules them at once. p_known are the definitions that the caller took
-- p_refs for, from memory: says `stale` and does nothing if one of them is not current or not enabled any more.
create function start_children(
    p_refs text[], p_known integer[],
    p_ids uuid[], p_namespaces integer[], p_definitions integer[], p_params text[], p_options text[], p_origins text[],
    p_not_before timestamptz[], p_parents uuid[], p_tasks text[], p_items integer[]
) returns setof staged
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
as $$
begin
    if exists (select from unnest(p_refs, p_known) as k (ref, id)
               where not exists (select from catalog c where c.kind = any ('{action,workflow}') and c.ref = k.ref
                                 and c.definition_id = k.id and c.enabled)) then
        return query select null::bigint, 'stale', '{}'::uuid[];
        return;
    end if;
    return query select * from request_executions(p_ids, p_namespaces, p_definitions, p_params, p_options, p_origins,
        null, p_not_before, p_parents, p_tasks, p_items, true);
end $$;
