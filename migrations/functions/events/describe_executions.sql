-- Return the tenant and the payload of a system event for each of these executions. `language/terms/system_triggers.py` describes
-- the fields. `started_at` comes from the claim of the last attempt, which exists unless the worker was lost. The title is null,
-- since an executor adds it before it matches rules. The text of an encrypted error stays sealed.
-- planner: lookups
create or replace function describe_executions(p_ids uuid[]) returns table (id uuid, tenant text, payload jsonb)
language plpgsql stable
as $$
#variable_conflict use_column
begin
    return query
    select e.id, split_part(n.name, '::', 1), jsonb_build_object(
        'version', 1, 'execution', e.id, 'status', e.status, 'action', n.action, 'pack', split_part(n.action, '.', 1),
        'tenant', split_part(n.name, '::', 1), 'namespace', n.name, 'parent', e.parent, 'root', coalesce(root_of(e.parent), e.id),
        'task', e.task, 'item', nullif(e.item, -1), 'attempt', e.attempt, 'reason', e.reason,
        'error', case when jsonb_typeof(r.error) = 'object' then (
            select jsonb_object_agg(x.key, x.value) from jsonb_each(r.error) x where x.key in ('type', 'message', '$sealed')) end,
        'labels', coalesce((select jsonb_object_agg(l.key, l.value) from label l where l.execution_id = e.id), '{}'),
        'title', null, 'created_at', instant_text(e.created_at), 'started_at', instant_text(case
            when n.kind = 'workflow' then case when e.status not in ('requested', 'queued') then coalesce(e.since, e.ready_at) end
            else (select max(c.claimed_at) from claim c where c.worker = e.claim and e.id = any (c.executions)) end),
        'ended_at', instant_text(e.finished_at),
        'path', '/executions/' || e.id)
    from execution e
    join namespace n on n.id = e.namespace_id
    left join result r on r.execution_id = e.id
    where e.id = any (p_ids)
    order by e.id;
end $$;
