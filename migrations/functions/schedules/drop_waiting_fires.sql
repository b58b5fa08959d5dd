-- Skip the waiting fires of a schedule that was disabled or deleted. `p_reason` becomes their error.
-- planner: lookups
create or replace function drop_waiting_fires(p_schedule text, p_reason text) returns void
language sql
as $$
    with gone as (
        delete from waiting_fire where schedule = p_schedule returning schedule, due_at
    )
    update fire f set status = 'skipped', execution_id = null, error = p_reason
    from gone g where f.schedule = g.schedule and f.due_at = g.due_at and f.status = 'queued'
$$;
