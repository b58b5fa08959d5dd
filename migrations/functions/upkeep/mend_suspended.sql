-- I10g. A function that sleeps while what it waits for is there is woken; what has not been waiting for long sleeps no more.
create or replace function mend_suspended(p_ids uuid[]) returns message[]
language plpgsql
as $$
begin
    return wake_functions(p_ids, 'what it waited for is there (penstock repair)');
end $$;
