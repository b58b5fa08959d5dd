-- Let lanes that stood aside (`p_kind` = worker), or were regrouped (regroup), wait at the gate of their first key again.
-- Return these keys. The caller holds the locks of all keys of the lanes, and promotes there, which finds out whether a key
-- is full. A lane with another kind of gate is left alone: its limits may have changed before the caller had the locks.
-- planner: lookups
create or replace function restore_gates(p_lanes uuid[], p_kind text) returns limit_key[]
language plpgsql
as $$
declare
    v_gates limit_key[];
begin
    with moved as (
        update lane
        set gate_kind = 'limit', gate_limit = (keys[1]).limit_id, gate_group = (keys[1]).group_value,
            moved_at = clock_timestamp()
        where id = any (p_lanes) and gate_kind = p_kind
        returning keys[1] as gate
    )
    select array_agg(distinct gate) into v_gates from moved;
    return v_gates;
end $$;
