-- Record fires with the status that each should have, and set the next instants of their schedules. A fire that exists is left
-- alone (I7), since another replica has recorded it. The exception is a backfill of a fire that was skipped or failed. A null in
-- `p_since` leaves the times of that schedule as they are. Return only fires that this call of the function recorded: the
-- executions of `created` and `queued` ones, and the number of `skipped` and `failed` ones.
-- planner: indexes_unmerged
create or replace function record_fires(
    p_refs text[], p_since timestamptz[], p_next timestamptz[], p_problems text[],
    p_schedules text[], p_dues timestamptz[], p_kinds text[], p_statuses text[], p_definitions integer[], p_ids uuid[],
    p_errors text[], out created uuid[], out queued uuid[], out skipped integer, out failed integer
)
language plpgsql
as $$
begin
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
    )
    select coalesce(array_agg(execution_id) filter (where status = 'created'), '{}'),
        coalesce(array_agg(execution_id) filter (where status = 'queued'), '{}'),
        count(*) filter (where status = 'skipped'), count(*) filter (where status = 'failed')
    into created, queued, skipped, failed from made;
end $$;
