-- Lock workflows until the transaction ends, and return the state of those that run, as the last holder of the lock committed it.
-- With `p_create`, first insert the missing rows of running workflows (make_workflows). Parameters below 2,000 bytes are returned
-- too, since most tasks read them.
-- planner: lookups_planned_once
create or replace function open_workflows(p_ids uuid[], p_create boolean) returns table (
    execution_id uuid, definition_id integer, depth smallint, tenant text, head text, rerun text, stops integer,
    stop_status text, stop_reason text, created_at timestamptz, params text, context text
)
language plpgsql
as $$
begin
    perform lock_workflows(p_ids);
    if p_create then
        perform make_workflows(p_ids);
    end if;
    return query
        select w.execution_id, w.definition_id, w.depth, w.tenant, w.head::text, w.rerun::text, w.stops,
            w.stop_status, w.stop_reason, e.created_at,
            case when pg_column_size(p.params) < 2000 then p.params::text end,
            case when pg_column_size(p.params) < 2000 then (p.options -> 'context')::text end
        from workflow w
        cross join lateral (select e.status, e.created_at from execution e where e.id = w.execution_id offset 0) e
        cross join lateral (select p.params, p.options from payload p where p.execution_id = w.execution_id offset 0) p
        where w.execution_id = any (p_ids) and e.status = 'running';
end $$;
