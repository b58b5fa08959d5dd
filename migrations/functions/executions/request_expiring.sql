-- Create executions (request_executions) that end as `timeout` if they have not begun by their instants in `p_expires`. A null
-- there means no such instant. An execution that is already past its instant is created but not started, and ends at once.
-- planner: indexes_planned_once
create or replace function request_expiring(
    p_ids uuid[], p_namespaces integer[], p_definitions integer[], p_params text[], p_options text[], p_origins text[],
    p_priorities smallint[], p_not_before timestamptz[], p_expires timestamptz[], p_fused boolean, p_alone boolean default false
) returns message[]
language plpgsql
as $$
declare
    v_now constant timestamptz := clock_timestamp();
    v_expired uuid[];
    v_messages message[];
begin
    insert into timer (due_at, kind, execution_id)
    select d.expires, 'expires', d.id from unnest(p_ids, p_expires) as d (id, expires)
    where d.expires is not null on conflict do nothing;
    v_messages := timers_set((select min(d.expires) from unnest(p_expires) as d (expires)));
    v_expired := array(select d.id from unnest(p_ids, p_expires) as d (id, expires) where d.expires <= v_now);
    if v_expired <> '{}' then
        -- No expired execution is created as started, since each ends below.
        p_not_before := array(
            select case when d.expires <= v_now then v_now else d.not_before end
            from unnest(p_ids, p_not_before, p_expires) with ordinality as d (id, not_before, expires, place) order by d.place);
    end if;
    v_messages := v_messages || request_executions(p_ids, p_namespaces, p_definitions, p_params, p_options, p_origins,
        p_priorities, p_not_before, null, null, null, p_fused, p_alone);
    update execution set timed = true
    where id = any (array(select d.id from unnest(p_ids, p_expires) as d (id, expires) where d.expires is not null));
    if v_expired <> '{}' then
        v_messages := v_messages || end_unstarted(v_expired);
    end if;
    return v_messages;
end $$;
