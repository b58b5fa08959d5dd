-- Tells whoever follows these executions, which have ended: their workflows, and the actions that come after them.
create or replace function tell_ends(p_ids uuid[]) returns message[]
language plpgsql
as $$
begin
    insert into untold (execution_id) select unnest(p_ids) on conflict do nothing;
    return stage('execution.completed', p_ids, 100);
end $$;
