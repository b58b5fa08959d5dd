-- Return the owner of the budgets that the tree of an execution shares, null if there are none. `p_parent` is its parent, if it has one.
create or replace function budget_owner(p_parent uuid, p_id uuid) returns uuid
language sql stable
as $$
    select t.owner from budget_tree t where t.root = coalesce(root_of(p_parent), p_id)
$$;
