-- Raise `penstock.budget.spent` for the budgets at these gates of which a waiting execution needs more than is left, while no running
-- attempt can give any back. It comes once for each budget: `budget.spent_at` is set in the same transaction. The caller holds the locks of
-- the keys. The function has the owner's rights, so that no worker needs the right to change budgets.
-- planner: lookups
create or replace function raise_spent_budgets(p_keys limit_key[]) returns message[]
language plpgsql security definer
as $$
declare
    r record;
begin
    if not is_asked('penstock.budget.spent') then
        return '{}';
    end if;
    with spent as materialized (
        select distinct on (b.owner, b.unit) b.owner, b.unit, b.amount, b.when_spent, m.free, k.cost, w.execution_id
        from unnest(key_room(p_keys)) m
        join concurrency_limit c on c.id = m.limit_id and c.budget = c.id
        join budget b on b.owner::text = m.group_value and b.unit = c.unit and b.spent_at is null
        join lane l on l.gate_limit = m.limit_id and l.gate_group = m.group_value
        join waiter w on w.lane = l.id
        cross join lateral unnest(l.keys, w.costs) k (limit_id, group_value, cost)
        where k.limit_id = m.limit_id and k.cost > m.free
            and not exists (select from slot s where s.limit_id = m.limit_id and s.group_value = m.group_value)
        order by b.owner, b.unit, w.execution_id
    ), marked as (
        update budget b set spent_at = clock_timestamp() from spent s where b.owner = s.owner and b.unit = s.unit and b.spent_at is null
        returning b.owner, b.unit
    )
    select array_agg(d.tenant) as tenants, array_agg(d.id) as causes, array_agg(jsonb_build_object(
            'version', 1, 'root', d.payload -> 'root', 'unit', s.unit, 'amount', s.amount, 'left', s.free, 'needed', s.cost,
            'when_spent', s.when_spent, 'tenant', d.tenant, 'execution', d.id, 'action', d.payload -> 'action',
            'path', '/executions/' || (d.payload ->> 'root'))) as payloads
    into r
    from spent s join marked using (owner, unit)
    cross join lateral describe_executions(array[s.execution_id]) d;
    if r.tenants is null then
        return '{}';
    end if;
    return raise_events('penstock.budget.spent', r.tenants, r.payloads, r.causes);
end $$;
