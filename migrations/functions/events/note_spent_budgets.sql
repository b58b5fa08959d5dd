-- Handle spent budgets of these keys. Less is left of such a budget than a waiting execution needs, and no attempt holds a slot
-- of the budget. If the budget refuses (`when_spent: refuse`), set timers for these executions. The loop of the timers then ends
-- them (refuse_spent) in a transaction that takes its locks in order. Raise `penstock.budget.spent` once for each budget, and set
-- `budget.spent_at` in the same transaction. The caller holds the locks of the keys. The function has the owner's rights, so that
-- no worker needs the right to change budgets.
-- planner: lookups
create or replace function note_spent_budgets(p_keys limit_key[]) returns message[]
language plpgsql security definer
as $$
declare
    v_raised boolean := is_asked('penstock.budget.spent');
    r record;
begin
    with short as materialized (
        select b.owner, b.unit, b.amount, b.when_spent, b.spent_at, m.free, k.cost, w.execution_id
        from unnest(key_room(p_keys)) m
        join concurrency_limit c on c.id = m.limit_id and c.budget = c.id
        join budget b on b.owner::text = m.group_value and b.unit = c.unit
        join lane l on l.gate_limit = m.limit_id and l.gate_group = m.group_value
        join waiter w on w.lane = l.id
        cross join lateral unnest(l.keys, w.costs) k (limit_id, group_value, cost)
        where k.limit_id = m.limit_id and k.cost > m.free
            and not exists (select from slot s where s.limit_id = m.limit_id and s.group_value = m.group_value)
    ), refused as (
        insert into timer (due_at, kind, execution_id)
        select clock_timestamp(), 'spent', s.execution_id from short s
        where s.when_spent = 'refuse'
            and not exists (select from timer t where t.execution_id = s.execution_id and t.kind = 'spent')
    ), first as materialized (
        select distinct on (s.owner, s.unit) s.* from short s
        where v_raised and s.spent_at is null
        order by s.owner, s.unit, s.execution_id
    ), marked as (
        update budget b set spent_at = clock_timestamp() from first s where b.owner = s.owner and b.unit = s.unit and b.spent_at is null
        returning b.owner, b.unit
    )
    select array_agg(d.tenant) as tenants, array_agg(d.id) as causes, array_agg(jsonb_build_object(
            'version', 1, 'root', d.payload -> 'root', 'unit', s.unit, 'amount', s.amount, 'left', s.free, 'needed', s.cost,
            'when_spent', s.when_spent, 'tenant', d.tenant, 'execution', d.id, 'action', d.payload -> 'action',
            'path', '/executions/' || (d.payload ->> 'root'))) as payloads
    into r
    from first s join marked using (owner, unit)
    cross join lateral describe_executions(array[s.execution_id]) d;
    if r.tenants is null then
        return '{}';
    end if;
    return raise_events('penstock.budget.spent', r.tenants, r.payloads, r.causes);
end $$;
