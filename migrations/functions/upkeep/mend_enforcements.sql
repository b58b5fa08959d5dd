-- Repair invariant I7: execute enforcements that never had an execution. If the execution existed and is gone, the enforcement is
-- left alone, since its action would run twice.
create or replace function mend_enforcements(p_ids uuid[]) returns message[]
language plpgsql
as $$
begin
    update enforcement n set status = 'created'
    where n.execution_id = any (p_ids) and n.status = 'executed'
        and not exists (select from execution e where e.id = n.execution_id)
        and not exists (select from archive a where a.id = n.execution_id)
        and not exists (select from history h where h.execution_id = n.execution_id
                        and h.at >= n.created_at - interval '1 minute');
    return execute_enforcements(p_ids);
end $$;
