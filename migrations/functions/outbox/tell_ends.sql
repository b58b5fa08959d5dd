-- Stage messages about the ends of these executions, for their workflows and for the actions that follow them.
create or replace function tell_ends(p_ids uuid[]) returns message[]
language plpgsql
as $$
begin
    insert into untold (execution_id) select unnest(p_ids) on conflict do nothing;
    return stage('execution.completed', p_ids, 100);
end $$;
