-- Return the key of the limit `p_limit` for an execution with the parameters `p_params` and the labels `p_labels`. `p_by` are the
-- paths by which the limit is grouped (group_values). A limit without them has one key.
create or replace function slot_key(p_limit integer, p_by text[], p_params jsonb, p_labels jsonb) returns limit_key
language sql stable
as $$
    select (p_limit, case when p_by = '{}' then '' else group_values(p_by, p_params, p_labels) end)::limit_key
$$;
