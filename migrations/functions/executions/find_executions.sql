-- Return executions by id, open or archived, with their parameters and results. Columns that the archive does not have are null.
-- A client's role cannot read the tables, and gets only the executions that it started. For its sake, the function has the
-- owner's rights.
-- planner: lookups_planned_once
create or replace function find_executions(p_ids uuid[])
returns table (
    id uuid, status text, namespace text, action text, kind text, queue text, attempt integer, failures integer,
    recoveries integer, priority smallint, parent uuid, task text, item integer, created_at timestamptz, ready_at timestamptz,
    since timestamptz, not_before timestamptz, finished_at timestamptz, reason text, definition_id integer, params text,
    options text, origin text, result text, error text, claim uuid
)
language plpgsql stable security definer
as $$
declare
    v_open uuid[] := p_ids;
    v_archived uuid[] := p_ids;
begin
    if not has_table_privilege(session_user, 'execution'::regclass, 'select') then
        v_open := own_executions(p_ids);
        v_archived := own_archived(p_ids);
    end if;
    return query
    select e.id, e.status, n.name, n.action, n.kind, n.queue, e.attempt, e.failures, e.recoveries, e.priority,
        e.parent, e.task, e.item, e.created_at, e.ready_at, coalesce(e.since, e.ready_at),
        e.not_before, e.finished_at, e.reason, e.definition_id,
        p.params::text, p.options::text, p.origin::text, r.result::text, r.error::text, e.claim
    from execution e
    join namespace n on n.id = e.namespace_id
    left join payload p on p.execution_id = e.id
    left join result r on r.execution_id = e.id
    where e.id = any (v_open)
    union all
    select a.id, a.status, a.namespace, a.action, null, null, a.attempt, a.failures, a.recoveries, a.priority,
        a.parent, a.task, a.item, a.created_at, null, null, null, a.finished_at, a.reason, a.definition_id,
        a.params::text, a.options::text, a.origin::text, a.result::text, a.error::text, null
    from archive a where a.id = any (v_archived);
end $$;
