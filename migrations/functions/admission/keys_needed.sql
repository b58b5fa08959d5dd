-- Return the keys of the slots that an execution needs, one for each limit in `p_limits`, or null if it needs none. Limits by a
-- budget need one key for each unit, and none if the tree has no budget of that unit. A workflow or a waiting task needs no slot
-- of a limit that a workflow around it holds. Otherwise it could wait for the end of that workflow.
-- `p_params` and `p_definition` are null if the execution is stored. Otherwise it is about to be created with them, and with the
-- options `p_options` (group_values).
-- PostgreSQL inlines this function into the caller's query. `offset 0` makes it evaluate the result once. A single limit, the
-- usual case, needs no aggregate.
create or replace function keys_needed(
    p_limits integer[], p_kind text, p_parent uuid, p_id uuid, p_params jsonb, p_definition integer, p_options text
) returns table (keys limit_key[])
language sql stable
as $$
    select nullif(case when cardinality(p_limits) = 1 and (p_parent is null or p_kind = 'action') then (
        select case when l.budget is null
            then array[(l.id, case when l.by = '{}' then ''
                else group_values(l.by, p_id, p_parent, p_params, p_definition, p_options) end)::limit_key]
            else array(select (l.budget, b.owner::text)::limit_key from budget b
                       where b.owner = budget_owner(p_parent, p_id) and b.unit = l.unit) end
        from concurrency_limit l where l.id = p_limits[1]
    ) else (
        select array_agg(case when l.budget is null
            then (l.id, case when l.by = '{}' then ''
                else group_values(l.by, p_id, p_parent, p_params, p_definition, p_options) end)::limit_key
            else (l.budget, b.owner::text)::limit_key end order by l.id) filter (where l.budget is null or
                b.owner is not null and not exists (
                    select from concurrency_limit o where o.id = any (p_limits) and o.budget = l.budget and o.id < l.id))
        from concurrency_limit l
        left join budget b on l.budget is not null and b.owner = budget_owner(p_parent, p_id) and b.unit = l.unit
        where l.id = any (p_limits) and (p_parent is null or p_kind = 'action' or not exists (
            with recursive above as (
                select p_parent as id
                union all
                select x.parent from above join execution x on x.id = above.id where x.parent is not null
            )
            select from above join execution x on x.id = above.id cross join unnest(x.keys) held
            where held.limit_id = l.id))
    ) end, '{}') offset 0
$$;
