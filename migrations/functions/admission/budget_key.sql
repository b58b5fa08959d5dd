-- Return the key of the budget from which an execution takes its cost in a unit, null if its tree has no such budget. `p_budget` is
-- the row of the unit in concurrency_limit.
create or replace function budget_key(p_budget integer, p_unit text, p_parent uuid, p_id uuid) returns limit_key
language sql stable
as $$
    select (p_budget, b.owner::text)::limit_key from budget b where b.owner = budget_owner(p_parent, p_id) and b.unit = p_unit
$$;
