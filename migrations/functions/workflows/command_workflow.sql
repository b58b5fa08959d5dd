-- Tells a running workflow something, also one that has not begun to work. Stages nothing if it does not run.
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
    -- From now on nothing of it is scheduled; what was scheduled before is held when the command is obeyed.
    insert into paused_workflow (execution_id) select p_execution where p_kind = 'pause' on conflict do nothing;
    return stage('workflow.started', array[p_execution], 1);
end $$;
