-- Create the budgets that the options of new executions name. The caller creates the executions in the same transaction, and asks for
-- their slots after this call. A child takes from the budgets of its tree, and gets none of its own.
create or replace function create_budgets(p_ids uuid[], p_options text[], p_parents uuid[]) returns void
language plpgsql
as $$
begin
    with named as (
        select d.id, d.options::jsonb as options from unnest(p_ids, p_options, p_parents) d (id, options, parent)
        where d.options like '%"budget"%' and d.parent is null
    ), trees as (
        insert into budget_tree (root, owner) select id, id from named where options ? 'budget' on conflict do nothing
        returning root
    )
    insert into budget (owner, unit, amount, when_spent)
    select n.id, b.unit, b.amount::numeric, coalesce(n.options ->> 'when_spent', 'refuse')
    from trees t join named n on n.id = t.root cross join lateral jsonb_each_text(n.options -> 'budget') b (unit, amount);
end $$;
