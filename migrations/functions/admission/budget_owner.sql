-- Return the owner of the budgets that the execution's tree shares, or null if it shares none. `p_parent` is the parent of the
-- execution `p_id`, or null. An execution that an attempt of the tree started (`started_by`) belongs to the tree, and so do all
-- executions under it.
-- planner: lookups
create or replace function budget_owner(p_parent uuid, p_id uuid) returns uuid
language plpgsql stable
as $$
declare
    v_root uuid := coalesce(root_of(p_parent), p_id);
    v_owner uuid;
    v_starter uuid;
begin
    while v_root is not null loop
        select t.owner into v_owner from budget_tree t where t.root = v_root;
        exit when v_owner is not null;
        select (x.origin ->> 'started_by')::uuid into v_starter from (
            select p.origin from payload p where p.execution_id = v_root
            union all
            select a.origin from archive a where a.id = v_root) x limit 1;
        exit when v_starter is null;
        v_root := coalesce((select root_of(e.id) from execution e where e.id = v_starter),
            (select a.root from archive a where a.id = v_starter limit 1));
        v_starter := null;
    end loop;
    return v_owner;
end $$;
