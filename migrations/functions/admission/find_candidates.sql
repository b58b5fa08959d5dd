-- Return the executions `p_ids` as candidates for admission, each with the keys that it needs. The lane and the costs are null:
-- find_lanes and set_costs set them.
create or replace function find_candidates(p_ids uuid[]) returns setof candidate
language sql stable
as $$
    select e.id, e.namespace_id, n.kind, n.queue, n.envelope, n.away_since is not null, e.attempt, (-e.priority)::smallint,
        e.ready_at, k.keys, null::uuid, null::integer, null::text, null::text, 0::bigint, null::timestamptz, null::integer, null::numeric[]
    from execution e
    join namespace n on n.id = e.namespace_id
    cross join lateral keys_needed(n.limits, n.kind, e.parent, e.id, null, null, null) k
    where e.id = any (p_ids)
$$;
