-- These executions with the keys that they need: of each limit that covers them one. A workflow that runs inside another one
-- needs none of a limit that the other one holds a slot of: it would wait for its own parent.
create or replace function find_candidates(p_ids uuid[]) returns setof candidate
language sql stable
as $$
    select e.id, e.namespace_id, n.kind, n.queue, n.envelope, n.away_since is not null, e.attempt, (-e.priority)::smallint,
        e.ready_at, k.keys, null::uuid, null::integer, null::text, null::text, 0::bigint, null::timestamptz, null::integer
    from execution e
    join namespace n on n.id = e.namespace_id
    cross join lateral (
        select array_agg((l.id, case when l.by = '{}' then ''
            else group_of(l.by, (select p.params from payload p where p.execution_id = e.id)) end)::limit_key
            order by l.id) as keys
        from concurrency_limit l
        where l.id = any (n.limits) and (e.parent is null or n.kind = 'action' or not exists (
            with recursive above as (
                select e.parent as id
                union all
                select x.parent from above join execution x on x.id = above.id where x.parent is not null
            )
            select from above join execution x on x.id = above.id cross join unnest(x.keys) held
            where held.limit_id = l.id))
        offset 0
    ) k
    where e.id = any (p_ids)
$$;
