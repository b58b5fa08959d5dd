-- Return the executions that wait in lanes and need a key, at its gate or at the gate of another limit. The caller holds the lock of
-- the key. Lanes that need one key are found by their gate, and the others by the gates of limits that share a namespace with it.
-- planner: lookups
create or replace function waiters_of(p_key limit_key) returns table (execution_id uuid, ready_at timestamptz)
language plpgsql stable rows 10
as $$
#variable_conflict use_column
begin
    return query
    select w.execution_id, w.ready_at from lane l join waiter w on w.lane = l.id
    where l.gate_limit = p_key.limit_id and l.gate_group = p_key.group_value
    union all
    select w.execution_id, w.ready_at
    from (select distinct unnest(n.limits) as id from namespace n where n.limits && array[p_key.limit_id]) o
    join lane l on l.gate_limit = o.id and cardinality(l.keys) > 1 and p_key = any (l.keys)
        and (l.gate_limit, l.gate_group) is distinct from (p_key.limit_id, p_key.group_value)
    join waiter w on w.lane = l.id
    -- Without a second limit, the index of lanes with several keys is not read.
    where exists (select from namespace n where n.limits && array[p_key.limit_id] and cardinality(n.limits) > 1);
end $$;
