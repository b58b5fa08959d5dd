-- Add events to the open bursts of their keys. An event is left out if another delivery has added it for this rule, or has
-- enforced it. The key's row stays locked until the commit, so no burst of the key closes meanwhile. An existing row is locked
-- and not changed: the process that checks the burst computes when it closes.
create or replace function join_bursts(
    p_events uuid[], p_rules text[], p_tenants text[], p_keys text[], p_at timestamptz[], p_definitions integer[],
    p_waits double precision[]
) returns void
language plpgsql
as $$
begin
    insert into burst_key (rule, tenant, key, due_at)
    select d.rule, d.tenant, d.key, min(d.at + make_interval(secs => d.waits))
    from unnest(p_events, p_rules, p_tenants, p_keys, p_at, p_waits) as d (event_id, rule, tenant, key, at, waits)
    where not exists (select from burst_event b where b.event_id = d.event_id and b.rule = d.rule)
    group by d.rule, d.tenant, d.key order by d.rule, d.tenant, d.key
    on conflict (rule, tenant, key) do update set due_at = burst_key.due_at where false;

    insert into burst_event (event_id, rule, tenant, key, at, definition_id)
    select * from unnest(p_events, p_rules, p_tenants, p_keys, p_at, p_definitions)
        as d (event_id, rule, tenant, key, at, definition_id)
    where not exists (select from enforcement n where n.event_id = d.event_id and n.rule = d.rule)
    on conflict do nothing;
end $$;
