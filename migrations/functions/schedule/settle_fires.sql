-- Writes down how the executions of open fires ended, a batch at a time. Returns fires whose execution is nowhere, be it
-- among the open, the finished or the archived ones: those were lost, and the caller, who now holds them, starts them again.
-- planner: lookups_of_fires
create or replace function settle_fires(p_limit integer) returns table (
    settled integer, ref text, due_at timestamptz, execution_id uuid, kind text, definition_id integer,
    namespace_id integer, recoveries smallint, now timestamptz
)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_ids uuid[];
    v_schedules text[];
    v_dues timestamptz[];
    v_left uuid[];
    v_count integer;
    v_first timestamptz;
    v_last timestamptz;
begin
    select array_agg(x.execution_id), array_agg(x.schedule), array_agg(x.due_at), min(x.due_at), max(x.due_at)
    into v_ids, v_schedules, v_dues, v_first, v_last
    from (
        select o.execution_id, o.schedule, o.due_at
        from open_fire o left join execution e on e.id = o.execution_id
        where e.id is null or e.finished_at is not null
        order by o.execution_id limit p_limit for update of o skip locked
    ) x;
    if v_ids is null then
        return;
    end if;

    with ended as materialized (
        select d.*, e.status, e.finished_at, r.error
        from unnest(v_ids, v_schedules, v_dues) as d (id, schedule, due_at)
        join execution e on e.id = d.id and e.finished_at is not null
        left join result r on r.execution_id = d.id
    ), told as (
        update fire f set outcome = t.status, ended_at = t.finished_at,
            error = case when t.status <> 'completed'
                    then left(concat_ws(': ', t.error ->> 'type', t.error ->> 'message'), 500) end
        from ended t
        where f.schedule = t.schedule and f.due_at = t.due_at and f.execution_id = t.id
            and f.due_at between v_first and v_last
    ), gone as (
        delete from open_fire o using ended t where o.execution_id = t.id returning o.execution_id
    )
    select count(*) into v_count from gone;
    return query select v_count, null::text, null::timestamptz, null::uuid, null::text, null::integer, null::integer,
        null::smallint, clock_timestamp();
    if v_count = cardinality(v_ids) then
        return;
    end if;

    with ended as materialized (
        select d.*, a.status, a.finished_at, a.error
        from unnest(v_ids, v_schedules, v_dues) as d (id, schedule, due_at)
        join open_fire o on o.execution_id = d.id
        join archive a on a.id = d.id and a.finished_at >= o.made_at
    ), told as (
        update fire f set outcome = t.status, ended_at = t.finished_at,
            error = case when t.status <> 'completed'
                    then left(concat_ws(': ', t.error ->> 'type', t.error ->> 'message'), 500) end
        from ended t
        where f.schedule = t.schedule and f.due_at = t.due_at and f.execution_id = t.id
            and f.due_at between v_first and v_last
    )
    delete from open_fire o using ended t where o.execution_id = t.id;

    select array_agg(o.execution_id) into v_left
    from unnest(v_ids) as d (id) join open_fire o on o.execution_id = d.id
    where not exists (select from execution e where e.id = o.execution_id);
    if v_left is null then
        return;
    end if;
    return query
    select 0, f.schedule, f.due_at, f.execution_id, f.kind, f.definition_id, s.namespace_id, f.recoveries,
        clock_timestamp()
    from open_fire o
    join fire f on f.schedule = o.schedule and f.due_at = o.due_at and f.execution_id = o.execution_id
    left join schedule s on s.ref = f.schedule
    where o.execution_id = any (v_left) and f.due_at between v_first and v_last;
    -- Their fire was dropped by the retention: nothing is left to recover.
    delete from open_fire o
    where o.execution_id = any (v_left)
        and not exists (select from fire f where f.schedule = o.schedule and f.due_at = o.due_at
                            and f.execution_id = o.execution_id);
end $$;
