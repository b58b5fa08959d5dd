-- Return the candidates with their costs: one for each key, in the order of the keys. If none of their limits has a cost, return
-- the candidates unchanged. The key of a limit without a cost has the cost null, which counts as 1. The key of a budget gets the
-- sum of the costs of all limits of its unit. The function reads the stored parameters, unless the caller passes `p_ids` and
-- `p_params` of executions that are not stored yet.
-- planner: lookups
create or replace function set_costs(p_candidates candidate[], p_ids uuid[] default null, p_params text[] default null)
returns candidate[]
language plpgsql stable
as $$
begin
    if not exists (
        select from concurrency_limit l
        where l.id = any (array(select k.limit_id from unnest(p_candidates) c cross join unnest(c.keys) k)) and l.cost is not null)
    then
        return p_candidates;
    end if;
    return array(
        select (c.id, c.namespace_id, c.kind, c.queue, c.envelope, c.away, c.attempt, c.rank, c.ready_at, c.keys, c.lane,
            c.fair_limit, c.fair_key, c.fair_group, c.turn, c.since, c.gate_limit, case when x.weighted then x.costs end)::candidate
        from unnest(p_candidates) with ordinality c
        cross join lateral (
            select case when p_ids is null then (select p.params from payload p where p.execution_id = c.id)
                else p_params[array_position(p_ids, c.id)]::jsonb end as params offset 0) p
        cross join lateral (
            select bool_or(l.cost is not null) as weighted,
                array_agg(case when l.budget is not null then (
                        select sum(cost_of(b.cost, p.params)) from namespace n
                        join concurrency_limit b on b.id = any (n.limits) and b.budget = l.id where n.id = c.namespace_id)
                    when l.cost is not null then cost_of(l.cost, p.params) end order by k.place) as costs
            from unnest(c.keys) with ordinality k (limit_id, group_value, place)
            left join concurrency_limit l on l.id = k.limit_id) x
        order by c.ordinality);
end $$;
