-- Set timers that refuse the executions that wait for a spent budget: they need more than is left, and no running attempt can give any
-- back. The timers' loop ends them in a transaction that takes its locks in order. The caller holds the locks of the keys.
-- planner: lookups
create or replace function note_spent(p_keys limit_key[]) returns void
language plpgsql
as $$
begin
    insert into timer (due_at, kind, execution_id)
    select clock_timestamp(), 'spent', w.execution_id
    from unnest(key_room(p_keys)) m
    join concurrency_limit c on c.id = m.limit_id and c.budget = c.id
    join budget b on b.owner::text = m.group_value and b.unit = c.unit and b.when_spent = 'refuse'
    join lane l on l.gate_limit = m.limit_id and l.gate_group = m.group_value
    join waiter w on w.lane = l.id
    cross join lateral unnest(l.keys, w.costs) k (limit_id, group_value, cost)
    where k.limit_id = m.limit_id and k.cost > m.free
        and not exists (select from slot s where s.limit_id = m.limit_id and s.group_value = m.group_value)
        and not exists (select from timer t where t.execution_id = w.execution_id and t.kind = 'spent');
end $$;
