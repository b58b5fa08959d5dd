-- Skip all waiting fires of these schedules, except the newest one of each schedule.
-- planner: lookups
create or replace function replace_waiting_fires(p_schedules text[]) returns void
language sql
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
