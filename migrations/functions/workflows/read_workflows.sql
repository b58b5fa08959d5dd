-- Return the state of the workflows among `p_ids` that run, for a worker that will remember it. One snapshot is read, without a
-- lock. The tasks are null if a workflow has more than `p_most`. take_steps compares `version` and `stops` once it has the locks,
-- so a state that is old by then changes nothing. Parameters below 2,000 bytes are returned, as in open_workflows.
-- planner: lookups_planned_once
create or replace function read_workflows(p_ids uuid[], p_most integer) returns table (
    execution_id uuid, definition_id integer, depth smallint, tenant text, head text, rerun text, stops integer,
    stop_status text, stop_reason text, created_at timestamptz, params text, context text,
    trace text, version integer, tasks integer[], records text[]
)
language plpgsql stable
as $$
begin
    return query
        select w.execution_id, w.definition_id, w.depth, w.tenant, w.head::text, w.rerun::text, w.stops,
            w.stop_status, w.stop_reason, e.created_at,
            case when pg_column_size(p.params) < 2000 then p.params::text end,
            case when pg_column_size(p.params) < 2000 then (p.options -> 'context')::text end,
            (p.origin -> 'trace')::text, w.version,
            case when t.number <= p_most then t.tasks end,
            case when t.number <= p_most then t.records end
        from workflow w
        cross join lateral (select e.status, e.created_at from execution e where e.id = w.execution_id offset 0) e
        cross join lateral (
            select p.params, p.options, p.origin from payload p where p.execution_id = w.execution_id offset 0
        ) p
        cross join lateral (
            select count(*) as number, array_agg(s.task) as tasks, array_agg(s.record::text) as records
            from (select s.task, s.record from workflow_task s where s.execution_id = w.execution_id limit p_most + 1) s
        ) t
        where w.execution_id = any (p_ids) and e.status = 'running';
end $$;
