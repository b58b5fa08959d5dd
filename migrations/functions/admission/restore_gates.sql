-- Let lanes wait at the gate of their first key again, and return these keys, or null. `p_kind` is the kind of gate at which the
-- lanes wait now: `worker` or `regroup`. A lane at another kind of gate is left alone: another transaction may have changed its
-- limits before the caller got the locks. The caller holds the locks of all keys of the lanes. It promotes at the returned keys,
-- which finds out whether a key is full.
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
