-- Return the candidates with the lane of each. Executions of one namespace that need the same keys share a lane. If one of their
-- limits is fair, also set the group in which an execution takes its turn. The group has the values of the parameters and labels
-- that the limit is grouped by and fair to. The text of a limit's cost and the paths of a fair limit are part of the lane, so a
-- change of either regroups the waiting executions.
-- planner: lookups
create or replace function find_lanes(p_candidates candidate[]) returns candidate[]
language plpgsql stable
as $$
begin
    return array(
        select (c.id, c.namespace_id, c.kind, c.queue, c.envelope, c.away, c.attempt, c.rank, c.ready_at, c.keys,
            md5(c.namespace_id || '|' || coalesce(f.limit_id || f.fair::text, '0') || '|' || c.keys::text
                || case when c.costs is null then '' else (
                select string_agg('|' || (l.cost ->> 'text'), '' order by l.id)
                from namespace n join concurrency_limit l on l.id = any (n.limits) where n.id = c.namespace_id) end)::uuid,
            f.limit_id, f.group_value, f.fair_group, c.turn, c.since, c.gate_limit, c.costs)::candidate
        from unnest(p_candidates) c
        left join lateral (
            select k.limit_id, k.group_value, l.fair,
                group_values(l.by || l.fair, c.id, null, null, null, null) as fair_group
            from unnest(c.keys) k join concurrency_limit l on l.id = k.limit_id and l.fair <> '{}'
            order by l.id limit 1
        ) f on true);
end $$;
