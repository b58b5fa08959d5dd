-- Lanes that stood aside stand before the first of their keys again. The caller holds the locks of all their keys, and promotes
-- there: it is looked at whether that one is full. Returns those keys.
-- planner: lookups
create or replace function stand_again(p_lanes uuid[]) returns limit_key[]
language plpgsql
as $$
declare
    v_gates limit_key[];
begin
    with moved as (
        update lane
        set gate_kind = 'limit', gate_limit = (keys[1]).limit_id, gate_group = (keys[1]).group_value,
            moved_at = clock_timestamp()
        where id = any (p_lanes) and gate_kind <> 'limit'
        returning keys[1] as gate
    )
    select array_agg(distinct gate) into v_gates from moved;
    return v_gates;
end $$;
