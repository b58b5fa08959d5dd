-- The first of a lane, locked and out of line. Null where somebody else has its row, perhaps to end it: a wake row is left then,
-- since who has it may die.
-- planner: lookups
create or replace function take_first(p_lane lane) returns candidate
language plpgsql
as $$
declare
    v_since timestamptz := (
        select greatest(w.since, p_lane.moved_at) from waiter w
        where w.lane = p_lane.id and w.rank = p_lane.rank and w.turn = p_lane.turn and w.ready_at = p_lane.ready_at
            and w.execution_id = p_lane.execution_id);
begin
    perform from execution where id = p_lane.execution_id and status = 'queued' for no key update skip locked;
    if not found then
        insert into wake (limit_id, group_value, at)
        values (p_lane.gate_limit, p_lane.gate_group, clock_timestamp() + interval '100 milliseconds');
        return null;
    end if;
    perform leave_line(array[p_lane.execution_id], true);
    return (
        select (p_lane.execution_id, n.id, n.queue, n.envelope, false, null, p_lane.rank, p_lane.ready_at, p_lane.keys,
            p_lane.id, p_lane.fair_limit, null, null, p_lane.turn, v_since, p_lane.gate_limit)::candidate
        from namespace n where n.id = p_lane.namespace_id);
end $$;
