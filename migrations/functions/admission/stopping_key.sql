-- Return a key at which this lane has to wait, or null if its first execution may start. Such a key has no room for that
-- execution. Or it is not among the keys `p_open`, which this promotion tries, and has a better-placed lane at its gate. Prefer a
-- key without costs. At the gate of a key with costs, the lane would delay lanes behind it that need less. The caller holds the
-- locks of all keys of the lane.
-- planner: lookups
create or replace function stopping_key(p_lane lane, p_rooms room[], p_open limit_key[]) returns limit_key
language plpgsql stable
as $$
begin
    return (
        select (m.limit_id, m.group_value)::limit_key
        from (select * from unnest(p_lane.keys, p_lane.costs) k (limit_id, group_value, cost)
              join unnest(p_rooms) r using (limit_id, group_value) offset 0) m
        where case when m.weighted then m.free < least(coalesce(m.cost, 1), m.allowed) else m.free <= 0 end
            or (m.limit_id, m.group_value)::limit_key <> all (p_open) and exists (
            select from lane l
            where l.gate_limit = m.limit_id and l.gate_group = m.group_value
                and (l.rank, l.place, l.ready_at, l.execution_id) < (p_lane.rank,
                    case when p_lane.fair_limit = m.limit_id then p_lane.turn else 0 end,
                    p_lane.ready_at, p_lane.execution_id))
        order by m.weighted limit 1);
end $$;
