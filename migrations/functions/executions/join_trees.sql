-- Begin the budgets and the chains that the options of new executions ask for. An execution that an attempt started shares the
-- budgets of the attempt's tree, unless it has its own. A child of a workflow uses the budgets of its tree, and gets none of its
-- own. The caller creates the executions in the same transaction, and requests their slots after this call. Executions of rules
-- already have their step of the chain (cut_chains), and begin no other chain.
create or replace function join_trees(p_ids uuid[], p_options text[], p_origins text[], p_parents uuid[]) returns void
language plpgsql
as $$
begin
    if exists (select from unnest(p_options) o where o like '%"budget"%') then
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
    end if;
    if exists (select from unnest(p_origins) o where o like '%"started_by"%') and exists (select from budget_tree) then
        insert into budget_tree (root, owner)
        select d.id, o.owner from unnest(p_ids, p_origins, p_parents) d (id, origin, parent)
        join execution e on e.id = (case when d.origin like '%"started_by"%' then d.origin::jsonb ->> 'started_by' end)::uuid
        cross join lateral budget_owner(e.parent, e.id) o (owner)
        where d.parent is null and o.owner is not null
        on conflict do nothing;
    end if;
    if exists (select from unnest(p_options) o where o like '%"max_de%') then
        with begun as (
            insert into chain (id, max_depth, max_descendants, depth)
            select d.id, (d.options::jsonb ->> 'max_depth')::integer, (d.options::jsonb ->> 'max_descendants')::integer, 0
            from unnest(p_ids, p_options, p_parents) d (id, options, parent)
            where d.options like '%"max_de%' and d.parent is null
                and (d.options::jsonb ? 'max_depth' or d.options::jsonb ? 'max_descendants')
                and not exists (select from chain_step s where s.id = d.id)
            on conflict do nothing
            returning id
        )
        insert into chain_step (id, depth, chains) select id, 0, array[id] from begun on conflict do nothing;
    end if;
end $$;
