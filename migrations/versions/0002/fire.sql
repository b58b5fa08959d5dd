-- Records fires, starts their executions, and moves the schedules on, in the caller's transaction, which holds the
-- schedules' rows. A fire that exists is left alone (I7), unless a backfill asks again for one that never ran.
--
-- p_refs ... are schedules: a null in p_since leaves the times of that one as they are. p_schedules ... are fires, with
-- the status they should have: created, skipped or failed. Under an overlap policy, created may become queued or skipped.
-- Returns what it staged and, for each status, the ids of the fires that really were recorded.
create function fire_schedules(
    p_refs text[], p_since timestamptz[], p_next timestamptz[], p_problems text[],
    p_schedules text[], p_dues timestamptz[], p_kinds text[], p_statuses text[], p_overlaps text[],
    p_definitions integer[], p_ids uuid[], p_namespaces integer[], p_actions integer[], p_not_before timestamptz[],
    p_params text[], p_options text[], p_origins text[], p_errors text[]
) returns setof staged
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_mergejoin = off
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
        perform give_way(array(
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

-- What the overlap policies make of fires that should start: whether the run before them still goes on. The caller
-- holds the schedules' rows, so nobody else starts one meanwhile.
create function decide_overlaps(
    p_schedules text[], p_dues timestamptz[], p_kinds text[], p_statuses text[], p_overlaps text[], p_errors text[]
) returns table (n bigint, status text, error text)
language sql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
    with given as (
        select * from unnest(p_schedules, p_dues, p_kinds, p_statuses, p_overlaps, p_errors) with ordinality
            as d (schedule, due_at, kind, status, overlap, error, n)
    ), starting as (
        select g.n, g.kind, g.overlap, row_number() over (partition by g.schedule order by g.due_at) as place,
            count(*) over (partition by g.schedule) as size,
            (select count(*) from waiting_fire w where w.schedule = g.schedule) as waiting,
            exists (select from execution e where e.id = s.last_execution and e.finished_at is null) as running
        from given g join schedule s on s.ref = g.schedule
        where g.overlap <> 'allow' and g.status = 'created'
            and not exists (
                select from fire f where f.schedule = g.schedule and f.due_at = g.due_at
                    and not (g.kind = 'backfill' and f.status in ('skipped', 'failed')))
    ), decided as (
        select n,
            case overlap
                when 'skip' then case when place > 1 or running or waiting > 0 then 'skipped' else 'created' end
                when 'queue' then case when place = 1 and not running and waiting = 0 then 'created'
                    when kind <> 'backfill' and waiting + place > 100 then 'skipped' else 'queued' end
                else case when place < size then 'skipped' when running or waiting > 0 then 'queued' else 'created' end
            end as status,
            case overlap
                when 'skip' then 'overlap: the run before it had not ended'
                when 'queue' then 'overlap: 100 fires wait already'
                else 'overlap: replaced by a newer fire'
            end as reason
        from starting
    )
    select g.n, coalesce(d.status, g.status), case when d.status = 'skipped' then d.reason else g.error end
    from given g left join decided d on d.n = g.n
$$;

-- Of the fires of these schedules that wait, only the newest goes on waiting.
create function give_way(p_schedules text[]) returns void
language sql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
    with gone as (
        delete from waiting_fire w
        where w.schedule = any (p_schedules)
            and exists (select from waiting_fire o where o.schedule = w.schedule and o.due_at > w.due_at)
        returning w.schedule, w.due_at
    )
    update fire f set status = 'skipped', execution_id = null, error = 'overlap: replaced by a newer fire'
    from gone g where f.schedule = g.schedule and f.due_at = g.due_at and f.status = 'queued'
$$;
