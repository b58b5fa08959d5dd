-- Return the waiting fires that may start once the earlier runs of their schedules have ended. While a schedule is paused, only
-- fires by hand or by a backfill may start. Its other fires may start after the pause.
create or replace function startable_fires() returns setof waiting_fire
language sql stable
as $$
    select w.* from waiting_fire w join schedule s on s.ref = w.schedule
    where s.since <= clock_timestamp() or exists (
        select from fire f where f.schedule = w.schedule and f.due_at = w.due_at and f.kind in ('manual', 'backfill'))
$$;
