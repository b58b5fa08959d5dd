-- Return the version of a workflow and the state of its tasks, for a worker that will remember them. The version is null if there
-- are more than `p_most` tasks. The caller holds the lock of the workflow.
-- planner: lookups_planned_once
create or replace function remembered_tasks(
    p_id uuid, p_most integer, out version integer, out tasks integer[], out records text[]
)
language plpgsql strict
as $$
begin
    select w.version into version from workflow w where w.execution_id = p_id;
    select array_agg(t.task), array_agg(t.record) into tasks, records
    from (select w.task, w.record::text from workflow_task w where w.execution_id = p_id limit p_most + 1) t;
    if cardinality(tasks) > p_most then
        version := null;
    end if;
end $$;
