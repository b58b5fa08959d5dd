-- Stages the messages that tell of the ends of these executions: to their workflows, and to the actions that come after them.
create or replace function tell_ends(p_ids uuid[]) returns message[]
language plpgsql
as $$
begin
    insert into untold (execution_id) select unnest(p_ids) on conflict do nothing;
    return stage('execution.completed', p_ids, 100);
end $$;
