-- Return true if an execution with these keys keeps all of its slots while it waits. An execution keeps them if one
-- of its limits has `while_waiting: keep`. Waiting for a slot is another case: a queued execution holds none.
create or replace function keeps_slots(p_keys limit_key[]) returns boolean
language plpgsql stable
as $$
begin
    return exists (select from unnest(p_keys) k join concurrency_limit l on l.id = k.limit_id
                   where l.while_waiting = 'keep');
end $$;
