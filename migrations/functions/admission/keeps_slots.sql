-- Return true if an execution keeps its slots while it waits for an answer: all of them, if one of its limits says so. An execution
-- that waits for a slot holds none.
create or replace function keeps_slots(p_keys limit_key[]) returns boolean
language plpgsql stable
as $$
begin
    return exists (select from unnest(p_keys) k join concurrency_limit l on l.id = k.limit_id
                   where l.while_waiting = 'keep');
end $$;
