-- Return the number of a key's advisory lock. All keys share 2,048 numbers, so no batch of locks fills PostgreSQL's lock table.
create or replace function key_lock(p_key limit_key) returns integer
language sql immutable
as $$
    select (hashtext(p_key.group_value) # p_key.limit_id) & 2047
$$;
