-- Mark lanes that no live worker runs as standing aside, so that other lanes pass them. The caller holds the locks of the keys of
-- these lanes. Write a wake row for each namespace: a worker may have started just now, before it could see these lanes.
-- planner: lookups
create or replace function stand_aside(p_lanes uuid[]) returns void
language plpgsql
as $$
begin
    with moved as (
        update lane set gate_kind = 'worker', gate_limit = null, gate_group = null, moved_at = clock_timestamp()
        where id = any (p_lanes)
        returning namespace_id
    )
    insert into wake (namespace_id) select distinct namespace_id from moved;
end $$;
