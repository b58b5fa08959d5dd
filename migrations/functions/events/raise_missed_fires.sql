-- Raise `penstock.schedule.missed` for these fires, which the policy for missed fires has skipped.
-- planner: lookups
create or replace function raise_missed_fires(p_schedules text[], p_dues timestamptz[]) returns message[]
language plpgsql
as $$
declare
    r record;
begin
    select array_agg(x.tenant) as tenants, array_agg(x.payload) as payloads into r from (
        select split_part(n.name, '::', 1) as tenant, jsonb_build_object(
            'version', 1, 'schedule', f.schedule, 'action', n.action, 'tenant', split_part(n.name, '::', 1),
            'due_at', instant_text(f.due_at), 'reason', f.error, 'path', '/schedules/' || f.schedule) as payload
        from unnest(p_schedules, p_dues) as d (schedule, due_at)
        join fire f on f.schedule = d.schedule and f.due_at = d.due_at
        join schedule s on s.ref = f.schedule
        join namespace n on n.id = s.namespace_id
        order by f.schedule, f.due_at
    ) x;
    return raise_events('penstock.schedule.missed', r.tenants, r.payloads, null);
end $$;
