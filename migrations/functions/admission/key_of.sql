-- The key of a limit that counts by these parameters (`p_by`), of an execution with these.
create or replace function key_of(p_limit integer, p_by text[], p_params jsonb) returns limit_key
language sql stable
as $$
    select (p_limit, case when p_by = '{}' then '' else group_of(p_by, p_params) end)::limit_key
$$;
