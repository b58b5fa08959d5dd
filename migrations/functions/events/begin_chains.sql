-- Begin a chain with each of these new events, bounded by `p_max_depth` and `p_max_descendants`, which the publisher gives. A
-- chain is all that one event or start causes, directly or indirectly. The caller has stored the events in this transaction, so
-- no process matches rules with them before it commits.
create or replace function begin_chains(p_ids uuid[], p_max_depth integer[], p_max_descendants integer[]) returns void
language plpgsql security definer
as $$
begin
    with begun as (
        insert into chain (id, max_depth, max_descendants, depth)
        select d.id, d.max_depth, d.max_descendants, 0
        from unnest(p_ids, p_max_depth, p_max_descendants) as d (id, max_depth, max_descendants)
        where exists (select from unmatched u where u.event_id = d.id)
        on conflict do nothing
        returning id
    )
    insert into chain_step (id, name, depth, chains)
    select b.id, e.trigger, 0, array[b.id] from begun b join event e on e.id = b.id
    on conflict do nothing;
end $$;
