-- Return the key of the limit `p_limit` for an execution with the parameters `p_params`. `p_by` are the paths of the parameters
-- by which the limit is grouped. A limit without them has one key.
create or replace function key_of(p_limit integer, p_by text[], p_params jsonb) returns limit_key
language sql stable
as $$
    select (p_limit, case when p_by = '{}' then '' else group_of(p_by, p_params) end)::limit_key
$$;
