-- Begin a chain with each new execution that its options bound. The caller creates the executions in the same transaction. The
-- bounds of a rule are in the same options, and its executions have their step already (cut_chains).
create or replace function start_chains(p_ids uuid[], p_options text[], p_parents uuid[]) returns void
language plpgsql
as $$
begin
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
end $$;
