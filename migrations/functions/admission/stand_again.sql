-- Lanes that stood aside for p_kind stand before the first of their keys again. The caller holds the locks of all their keys,
-- and promotes there: whether that one is full is seen then. Returns those keys. A lane may have been set aside for another
-- reason since the caller saw it (limits may have changed before it had the locks): it stays there.
-- planner: lookups
create or replace function stand_again(p_lanes uuid[], p_kind text) returns limit_key[]
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
