-- Add events to the windows of their keys, each event once for a rule. A late event (`p_late`) is recorded but joins no window.
-- The row of each key stays locked until the commit, so no window of the key ends meanwhile. `p_due` is when a window of the key
-- can end next. An event that can complete a match makes its key due earlier.
create or replace function join_windows(
    p_events uuid[], p_rules text[], p_tenants text[], p_keys text[], p_at timestamptz[], p_definitions integer[],
    p_due timestamptz[], p_fits text[], p_late boolean[]
) returns void
language plpgsql
as $$
begin
    insert into burst_key (rule, tenant, key, due_at)
    select d.rule, d.tenant, d.key, min(d.due_at)
    from unnest(p_events, p_rules, p_tenants, p_keys, p_due, p_late) as d (event_id, rule, tenant, key, due_at, late)
    where not d.late and not exists (select from burst_event b where b.event_id = d.event_id and b.rule = d.rule)
    group by d.rule, d.tenant, d.key order by d.rule, d.tenant, d.key
    on conflict (rule, tenant, key) do update set due_at = least(burst_key.due_at, excluded.due_at);

    insert into burst_event (event_id, rule, tenant, key, at, definition_id, fits, burst, dropped)
    select d.event_id, d.rule, d.tenant, d.key, d.at, d.definition_id, d.fits::smallint[],
        case when d.late then d.event_id end, case when d.late then 'late' end
    from unnest(p_events, p_rules, p_tenants, p_keys, p_at, p_definitions, p_fits, p_late)
        as d (event_id, rule, tenant, key, at, definition_id, fits, late)
    where not exists (select from enforcement n where n.event_id = d.event_id and n.rule = d.rule)
    on conflict do nothing;
end $$;
