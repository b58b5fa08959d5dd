-- Return the status and the error of each of these fires under its overlap policy. `n` is the number of the fire in the arrays,
-- from 1. Only a fire that should be created is decided, unless its policy is `allow` or the fire exists. All others keep the
-- status and the error that they have in the arrays. The caller holds the locks of the schedules' rows, so no other transaction
-- starts a fire meanwhile.
-- planner: lookups
create or replace function decide_overlaps(
    p_schedules text[], p_dues timestamptz[], p_kinds text[], p_statuses text[], p_overlaps text[], p_errors text[]
) returns table (n bigint, status text, error text)
language sql
as $$
    with given as (
        select * from unnest(p_schedules, p_dues, p_kinds, p_statuses, p_overlaps, p_errors) with ordinality
            as d (schedule, due_at, kind, status, overlap, error, n)
    ), starting as (
        select g.n, g.kind, g.overlap, row_number() over (partition by g.schedule order by g.due_at) as place,
            count(*) over (partition by g.schedule) as size,
            (select count(*) from waiting_fire w where w.schedule = g.schedule) as waiting,
            g.schedule in (select o.schedule from open_runs(p_schedules) o) as running
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
