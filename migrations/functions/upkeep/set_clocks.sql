-- Set the timers that bound the waits of executions for a worker (`start`) or for the slot of a limit (`queued`). Callers call
-- this for executions that are marked `timed`, whenever such a wait begins.
-- planner: lookups
create or replace function set_clocks(p_ids uuid[]) returns void
language plpgsql
as $$
begin
    insert into timer (due_at, kind, execution_id)
    select coalesce(e.since, e.ready_at) + make_interval(secs => t.seconds), t.kind, e.id
    from execution e
    join definition d on d.id = e.definition_id
    left join payload p on p.execution_id = e.id
    cross join lateral (
        select 'start' as kind, timeout_of(p.options, d.body, 'schedule_to_start', null) as seconds
        where e.status in ('requested', 'scheduled')
        union all
        select 'queued', timeout_of(p.options, d.body, 'queued', null) where e.status = 'queued'
    ) t
    where e.id = any (p_ids) and e.timed and e.not_before is distinct from held_until() and t.seconds is not null
    on conflict do nothing;
end $$;
