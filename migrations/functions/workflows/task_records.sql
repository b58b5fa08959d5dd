-- Return the state of the tasks `p_tasks`. Each belongs to the workflow at the same index of `p_ids`. The caller holds the locks
-- of the workflows.
-- planner: lookups_planned_once
create or replace function task_records(p_ids uuid[], p_tasks integer[]) returns table (execution_id uuid, task integer, record text)
language plpgsql
as $$
begin
    return query
        select t.execution_id, t.task, t.record::text
        from unnest(p_ids, p_tasks) as x (id, task)
        cross join lateral (select * from workflow_task w where w.execution_id = x.id and w.task = x.task offset 0) t;
end $$;
