-- I10g. A function that sleeps while what it waits for is there is woken; what has not been waiting for long sleeps no more.
create or replace function mend_suspended(p_ids uuid[]) returns message[]
language plpgsql
as $$
begin
    perform from execution where id = any (p_ids) order by id for no key update;
    delete from suspended s where s.execution_id = any (p_ids)
        and not exists (select from execution e where e.id = s.execution_id and e.status = 'waiting');
    return wake_functions(p_ids, 'what it waited for is there (penstock repair)');
end $$;
