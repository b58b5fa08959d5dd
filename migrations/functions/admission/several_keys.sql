-- The keys of an execution whose namespace has several limits, or that is a workflow inside another one. A workflow that
-- runs inside another one needs no slot of a limit that the other one holds a slot of: it would wait for its own parent.
create or replace function several_keys(p_id uuid, p_limits integer[], p_inside uuid) returns text[]
language sql stable
as $$
    select array_agg(k.key order by k.key)
    from (
        select l.id || ':' || case when l.by = '{}' then ''
            else group_of(l.by, (select p.params from payload p where p.execution_id = p_id)) end as key
        from concurrency_limit l
        where l.id = any (p_limits) and (p_inside is null or not exists (
            with recursive above as (
                select p_inside as id
                union all
                select x.parent from above join execution x on x.id = above.id where x.parent is not null
            )
            select from above join execution x on x.id = above.id cross join unnest(x.keys) held
            where split_part(held, ':', 1)::integer = l.id))
    ) k
$$;
