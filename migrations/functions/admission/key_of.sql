-- Return the key of a limit that is grouped by the parameters `p_by`, for an execution with the parameters `p_params`.
create or replace function key_of(p_limit integer, p_by text[], p_params jsonb) returns limit_key
language sql stable
as $$
    select (p_limit, case when p_by = '{}' then '' else group_of(p_by, p_params) end)::limit_key
$$;
