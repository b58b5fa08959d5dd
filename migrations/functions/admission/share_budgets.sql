-- Let the re-run `p_new` share the budgets of the tree of the execution `p_old`, which may be archived. Do nothing if that tree
-- has no budgets.
create or replace function share_budgets(p_new uuid, p_old uuid) returns void
language sql
as $$
    insert into budget_tree (root, owner)
    select p_new, o.owner from budget_owner(null, coalesce((select root_of(e.id) from execution e where e.id = p_old),
        (select a.root from archive a where a.id = p_old limit 1))) o (owner)
    where o.owner is not null
    on conflict do nothing
$$;
