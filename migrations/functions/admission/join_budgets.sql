-- Let new executions share the budgets of the tree that has started them (`started_by` in their origins). One with a budget of its own
-- keeps that. The caller creates the executions in the same transaction, and asks for their slots after this call.
create or replace function join_budgets(p_ids uuid[], p_origins text[], p_parents uuid[]) returns void
language sql
as $$
    insert into budget_tree (root, owner)
    select s.id, o.owner
    from (select d.id, (d.origin::jsonb ->> 'started_by')::uuid as starter from unnest(p_ids, p_origins, p_parents) d (id, origin, parent)
          where d.parent is null and d.origin like '%"started_by"%') s
    join execution e on e.id = s.starter
    cross join lateral budget_owner(e.parent, e.id) o (owner)
    where o.owner is not null
    on conflict do nothing
$$;
