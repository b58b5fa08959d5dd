-- Move the executions `p_ids` to the archive, with all rows that belong to them. These executions are whole finished trees, and
-- `p_roots` has the root of each. Return the number of moved executions.
-- planner: archive
create or replace function archive_trees(p_ids uuid[], p_roots uuid[]) returns integer
language plpgsql
as $$
declare
    v_moved integer;
begin
    with tree as (
        select * from unnest(p_ids, p_roots) as x (id, root)
    ), gone as (
        delete from execution where id = any (p_ids) returning *
    ), given as (
        delete from payload where execution_id = any (p_ids) returning *
    ), told as (
        delete from result where execution_id = any (p_ids) returning *
    ), recorded as (
        delete from step where execution_id = any (p_ids) returning *
    ), workflows as (
        select execution_id, workflow_state(execution_id) as state from workflow where execution_id = any (p_ids)
    ), tried as (
        delete from attempt
        where execution_id = any (array(select id from gone where attempt > 1 or status <> 'completed')) returning *
    ), labels as (
        delete from label where execution_id = any (p_ids) returning *
    ), labelled as (
        insert into archived_label (id, key, value, tenant, child, status, finished_at)
        select g.id, l.key, l.value, l.tenant, l.child, g.status, g.finished_at
        from labels l join gone g on g.id = l.execution_id
    ), kept as (
        insert into archive (id, finished_at, status, action, namespace, root, parent, task, item, created_at, attempt,
            failures, recoveries, priority, definition_id, reason, params, options, origin, result, error, state, steps, attempts)
        select g.id, g.finished_at, g.status, n.action, n.name, tree.root, g.parent, g.task, g.item, g.created_at,
            g.attempt, g.failures, g.recoveries, g.priority, g.definition_id, g.reason,
            p.params, p.options, p.origin, r.result, r.error, w.state, s.steps, t.attempts
        from gone g
        join tree on tree.id = g.id
        join namespace n on n.id = g.namespace_id
        left join given p on p.execution_id = g.id
        left join told r on r.execution_id = g.id
        left join workflows w on w.execution_id = g.id
        left join (
            select execution_id, jsonb_agg(to_jsonb(t) - 'execution_id' order by attempt) as attempts
            from tried t group by execution_id
        ) t on t.execution_id = g.id
        left join (
            select execution_id, jsonb_agg(to_jsonb(x) - 'execution_id' order by at, place) as steps
            from recorded x group by execution_id
        ) s on s.execution_id = g.id
        returning 1
    )
    select count(*) into v_moved from kept;
    return v_moved;
end $$;
