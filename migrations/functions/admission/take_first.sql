-- Lock the first execution of a lane, take it out of the lane, and return it. The lane then names its next execution, or is
-- deleted if it is empty. Return null if another transaction has locked the row, perhaps to end the execution. That transaction
-- may fail, so also write a wake row for 100 ms later. The caller holds the locks of the lane's keys.
-- planner: lookups
create or replace function take_first(p_lane lane) returns candidate
language plpgsql
as $$
declare
    v_first waiter;
    v_next waiter;
begin
    perform from execution where id = p_lane.execution_id and status = 'queued' for no key update skip locked;
    if not found then
        insert into wake (limit_id, group_value, at)
        values (p_lane.gate_limit, p_lane.gate_group, clock_timestamp() + interval '100 milliseconds');
        return null;
    end if;
    delete from waiter where execution_id = p_lane.execution_id returning * into v_first;
    insert into live (execution_id) values (v_first.execution_id);
    select * into v_next from waiter w
    where w.lane = p_lane.id and (w.rank, w.turn, w.ready_at, w.execution_id)
        > (p_lane.rank, p_lane.turn, p_lane.ready_at, p_lane.execution_id)
    order by w.rank, w.turn, w.ready_at, w.execution_id limit 1;
    if found then
        update lane set rank = v_next.rank, turn = v_next.turn, ready_at = v_next.ready_at,
            execution_id = v_next.execution_id, costs = v_next.costs, admitted = admitted + 1
        where id = p_lane.id;
    else
        delete from lane where id = p_lane.id;
    end if;
    return (
        select (v_first.execution_id, n.id, n.kind, n.queue, n.envelope, false, null, v_first.rank, v_first.ready_at, p_lane.keys,
            p_lane.id, p_lane.fair_limit, null, null, v_first.turn, greatest(v_first.since, p_lane.moved_at),
            p_lane.gate_limit, v_first.costs)::candidate
        from namespace n where n.id = p_lane.namespace_id);
end $$;
