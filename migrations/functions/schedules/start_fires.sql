-- Create the executions of fires that the caller has recorded, with the priority and the expiry in their options. The expiry
-- counts from the due instant of the fire. For a backfill it counts from now, since its due instants are long past.
-- planner: indexes_planned_once
create or replace function start_fires(
    p_ids uuid[], p_namespaces integer[], p_actions integer[], p_params text[], p_options text[], p_origins text[],
    p_not_before timestamptz[]
) returns message[]
language plpgsql
as $$
declare
    v_priorities smallint[];
    v_expires timestamptz[];
begin
    if exists (select from unnest(p_options) o where o like '%"priority"%' or o like '%"expires"%') then
        select array_agg((d.options ->> 'priority')::smallint order by d.place),
            array_agg(case d.origin ->> 'kind' when 'backfill' then clock_timestamp() else (d.origin ->> 'due')::timestamptz end
                + make_interval(secs => (d.options ->> 'expires')::double precision) order by d.place)
        into v_priorities, v_expires
        from (
            select o.options::jsonb as options, o.origin::jsonb as origin, o.place
            from unnest(p_options, p_origins) with ordinality as o (options, origin, place)
        ) d;
    end if;
    if exists (select from unnest(v_expires) e where e is not null) then
        return request_expiring(p_ids, p_namespaces, p_actions, p_params, p_options, p_origins, v_priorities, p_not_before,
            v_expires, true);
    end if;
    return request_executions(p_ids, p_namespaces, p_actions, p_params, p_options, p_origins, v_priorities, p_not_before, null,
        null, null, true);
end $$;
