-- Records fires, starts their executions, and moves the schedules on, in the caller's transaction, which holds the
-- schedules' rows. A fire that exists is left alone (I7), unless a backfill asks again for one that never ran.
--
-- p_refs ... are schedules: a null in p_since leaves the times of that one as they are. p_schedules ... are fires, with
-- the status they should have: created, skipped or failed. Under an overlap policy, created may become queued or skipped.
-- Returns what it staged and, for each status, the ids of the fires that really were recorded.
-- planner: indexes_unmerged
create or replace function fire_schedules(
    p_refs text[], p_since timestamptz[], p_next timestamptz[], p_problems text[],
    p_schedules text[], p_dues timestamptz[], p_kinds text[], p_statuses text[], p_overlaps text[],
    p_definitions integer[], p_ids uuid[], p_namespaces integer[], p_actions integer[], p_not_before timestamptz[],
    p_params text[], p_options text[], p_origins text[], p_errors text[]
) returns setof staged
language plpgsql
as $$
declare
    v_created uuid[];
    v_queued uuid[];
    v_counted staged[];
begin
    if exists (select from unnest(p_overlaps) o where o <> 'allow') then
        select array_agg(d.status order by d.n), array_agg(d.error order by d.n) into p_statuses, p_errors
        from decide_overlaps(p_schedules, p_dues, p_kinds, p_statuses, p_overlaps, p_errors) d;
    end if;

    with given as materialized (
        select * from unnest(p_schedules, p_dues, p_kinds, p_statuses, p_definitions, p_ids, p_errors)
            as d (schedule, due_at, kind, status, definition_id, id, error)
    ), made as (
        insert into fire as f (schedule, due_at, status, kind, definition_id, execution_id, made_by, error)
        select schedule, due_at, status, kind, definition_id, case when status in ('created', 'queued') then id end,
            current_setting('application_name'), error
        from given order by schedule, due_at
        on conflict (schedule, due_at) do update
        set status = excluded.status, kind = excluded.kind, definition_id = excluded.definition_id,
            execution_id = excluded.execution_id, made_at = clock_timestamp(), made_by = excluded.made_by, error = null
        where excluded.kind = 'backfill' and excluded.status in ('created', 'queued')
            and f.status in ('skipped', 'failed')
        returning f.schedule, f.due_at, f.status, f.execution_id
    ), opened as (
        insert into open_fire (execution_id, schedule, due_at)
        select execution_id, schedule, due_at from made where status = 'created'
    ), latest as (
        select schedule, max(due_at) as due_at,
            (array_agg(execution_id order by due_at desc) filter (where status = 'created'))[1] as execution_id
        from made where status in ('created', 'failed') group by schedule
    ), moved as (
        update schedule s
        set since = coalesce(d.since, s.since),
            next_due = case when d.since is null then s.next_due else d.next end,
            error = case when d.since is null then s.error else d.problem end,
            last_due = greatest(s.last_due, l.due_at),
            last_execution = coalesce(l.execution_id, s.last_execution)
        from unnest(p_refs, p_since, p_next, p_problems) as d (ref, since, next, problem)
        left join latest l on l.schedule = d.ref
        where s.ref = d.ref
    ), counted as (
        select status, array_agg(execution_id) as ids from made group by status
    )
    select array_agg((null, status, ids)::staged), max(ids) filter (where status = 'created'),
        max(ids) filter (where status = 'queued')
    into v_counted, v_created, v_queued
    from counted;
    return query select * from unnest(v_counted);

    if v_queued is not null then
        insert into waiting_fire (schedule, due_at, execution_id, replaces, namespace_id, definition_id, not_before,
            params, options, origin)
        select d.schedule, d.due_at, d.id, d.overlap = 'replace', d.namespace_id, d.action_id, d.not_before,
            d.params::jsonb, d.options::jsonb, d.origin::jsonb
        from unnest(p_schedules, p_dues, p_ids, p_overlaps, p_namespaces, p_actions, p_not_before, p_params, p_options,
            p_origins)
            as d (schedule, due_at, id, overlap, namespace_id, action_id, not_before, params, options, origin)
        where d.id = any (v_queued);
        perform replace_waiting_fires(array(
            select distinct d.schedule from unnest(p_schedules, p_overlaps, p_ids) as d (schedule, overlap, id)
            where d.overlap = 'replace' and d.id = any (v_queued)));
    end if;

    if v_created is null then
        return;
    elsif cardinality(v_created) < cardinality(p_ids) then
        select array_agg(d.id), array_agg(d.namespace_id), array_agg(d.action_id), array_agg(d.params),
            array_agg(d.options), array_agg(d.origin), array_agg(d.not_before)
        into p_ids, p_namespaces, p_actions, p_params, p_options, p_origins, p_not_before
        from unnest(p_ids, p_namespaces, p_actions, p_params, p_options, p_origins, p_not_before)
            as d (id, namespace_id, action_id, params, options, origin, not_before)
        join unnest(v_created) as c (id) on c.id = d.id;
    end if;
    return query select * from request_executions(p_ids, p_namespaces, p_actions, p_params, p_options, p_origins, null,
        p_not_before, null, null, null, true);
end $$;
