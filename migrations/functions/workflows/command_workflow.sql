-- Record a command for a running workflow, even one that has not begun, and stage a message that wakes the workflow. Return no
-- message if the workflow does not run.
create or replace function command_workflow(p_execution uuid, p_kind text, p_task text, p_value text, p_by text, p_reason text)
returns message[]
language plpgsql
as $$
begin
    perform make_workflows(array[p_execution]);
    insert into workflow_command (execution_id, kind, task, value, by, reason)
    select w.execution_id, p_kind, p_task, p_value::jsonb, p_by, p_reason
    from workflow w join execution e on e.id = w.execution_id
    where w.execution_id = p_execution and e.status = 'running';
    if not found then
        return '{}';
    end if;
    -- From the commit on, none of its tasks is scheduled. When the workflow handles the command, it holds tasks that were
    -- scheduled before.
    insert into paused_workflow (execution_id) select p_execution where p_kind = 'pause' on conflict do nothing;
    return stage('workflow.started', array[p_execution], 1);
end $$;
