-- Repair invariant I11: delete recorded steps of executions that no longer exist. The archive has its own copy of the steps of
-- archived executions. All other steps are past their retention.
create or replace function mend_steps(p_ids uuid[]) returns message[]
language plpgsql
as $$
begin
    delete from step s where s.execution_id = any (p_ids)
        and not exists (select from execution e where e.id = s.execution_id);
    return '{}';
end $$;
