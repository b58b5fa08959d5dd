-- I11. What was recorded of a run that is not there is forgotten: it is in the archive, or its run came to the end of its retention.
create or replace function mend_steps(p_ids uuid[]) returns message[]
language plpgsql
as $$
begin
    delete from step s where s.execution_id = any (p_ids)
        and not exists (select from execution e where e.id = s.execution_id);
    return '{}';
end $$;
