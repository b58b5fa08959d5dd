-- Raise a budget of the tree of the execution `p_id` to `p_amount`, and write a wake row for the executions that wait for it.
-- Return the owner and the amount before the change, or null if the tree has no budget of this unit. An amount that is not higher
-- changes nothing.
create or replace function raise_budget(p_id uuid, p_unit text, p_amount numeric, out owner uuid, out before numeric)
language plpgsql
as $$
begin
    select b.owner, b.amount into raise_budget.owner, before from budget b
    where b.unit = p_unit and b.owner = (
        select t.owner from budget_tree t
        where t.root = coalesce((select root_of(e.id) from execution e where e.id = p_id),
            (select a.root from archive a where a.id = p_id limit 1)))
    for no key update;
    if before >= p_amount or before is null then
        return;
    end if;
    update budget b set amount = p_amount where b.owner = raise_budget.owner and b.unit = p_unit;
    insert into wake (limit_id, group_value)
    select l.id, raise_budget.owner::text from concurrency_limit l where l.id = l.budget and l.unit = p_unit;
end $$;
