-- Return the new executions among the candidates that can never start, with the reason for each. The cost of such an execution is
-- NaN, or more than one of its limits allows in total. Or it is more than the whole amount of a budget with `when_spent: refuse`.
-- A retry is not returned: it starts when it can have the whole limit. A first query compares only the highest cost under each
-- limit, since most calls find none.
-- planner: lookups
create or replace function too_costly(p_candidates candidate[]) returns table (id uuid, reason text)
language plpgsql stable
as $$
#variable_conflict use_column
begin
    if not exists (
        select from (
            select k.limit_id, max(k.cost) as dearest
            from unnest(p_candidates) c cross join lateral unnest(c.keys, c.costs) k (limit_id, group_value, cost)
            where c.attempt = 0 and k.cost is not null group by k.limit_id) x
        join concurrency_limit l on l.id = x.limit_id and l.cost is not null
        where l.budget is not null or x.dearest > least(l.max, coalesce(l.rate_count, l.max)))
    then
        return;
    end if;
    return query
    select distinct on (c.id) c.id, case when k.cost = 'NaN'
        then format('refused: its cost under the limit %s is not a number of zero or more%s', l.ref, ': ' || (l.cost ->> 'text'))
        when l.budget is not null
        then format('refused: needs %s, and the budget has %s', amount_text(k.cost, l.unit), amount_text(b.amount, l.unit))
        else format('refused: needs %s, and the limit %s allows %s', amount_text(k.cost, l.unit), l.ref,
            case when l.rate_count <= l.max then amount_text(l.rate_count, l.unit) || ' in ' || amount_text(l.rate_seconds::numeric, 's')
                else amount_text(l.max, l.unit) || ' at once' end) end
    from unnest(p_candidates) c
    cross join lateral unnest(c.keys, c.costs) k (limit_id, group_value, cost)
    join concurrency_limit l on l.id = k.limit_id and l.cost is not null
    left join budget b on l.budget = l.id and b.owner::text = k.group_value and b.unit = l.unit
    where c.attempt = 0 and k.cost > case when l.budget is null then least(l.max, coalesce(l.rate_count, l.max))
        when b.when_spent = 'refuse' then b.amount else 'Infinity' end
    order by c.id, l.id;
end $$;
