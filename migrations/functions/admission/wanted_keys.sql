-- A key is a limit's id and, where the limit is grouped, the values of its parameters. Most need one.
create or replace function wanted_keys(p_ids uuid[]) returns setof wanted
language sql stable
as $$
    select e.id, e.namespace_id, n.queue, n.envelope, n.away_since is not null, e.attempt, (-e.priority)::smallint,
        e.ready_at, k.keys, null, null, null
    from execution e
    join namespace n on n.id = e.namespace_id
    left join concurrency_limit o on o.id = n.limits[1] and cardinality(n.limits) = 1
        and (e.parent is null or n.kind = 'action')
    cross join lateral (
        select case
            when o.by = '{}' then array[o.id || ':']
            when o.id is not null
                then array[o.id || ':' || group_of(o.by, (select p.params from payload p where p.execution_id = e.id))]
            else several_keys(e.id, n.limits, case when n.kind <> 'action' then e.parent end) end as keys
        offset 0
    ) k
    where e.id = any (p_ids)
$$;
