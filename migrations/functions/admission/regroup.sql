-- Move executions under changed limits to the lanes in which they belong now: the first `p_limit` executions of one lane. The
-- executions keep their places, since they keep the instant at which they became ready. An execution that needs no key any more
-- starts. `regrouped` is false if no lane is left to regroup, or if other transactions hold all rows that this call looked at.
-- planner: lookups
create or replace function regroup(p_limit integer, out messages message[], out regrouped boolean)
language plpgsql
as $$
declare
    v_lane lane;
    v_ids uuid[];
    v_belong candidate[];
    v_free candidate[];
    v_keys limit_key[];
begin
    messages := '{}';
    regrouped := false;
    select * into v_lane from lane where gate_kind = 'regroup' order by rank, ready_at, execution_id limit 1;
    if not found then
        return;
    end if;
    v_ids := array(select w.execution_id from waiter w where w.lane = v_lane.id
                   order by w.rank, w.turn, w.ready_at, w.execution_id limit p_limit);
    v_ids := array(select x.id from (select id from execution where id = any (v_ids) and status = 'queued'
                                     order by id for no key update skip locked) x);
    perform lock_placement();
    v_belong := find_lanes(set_costs(array(select c from find_candidates(v_ids) c)));
    v_keys := v_lane.keys || array(select distinct k from unnest(v_belong) c cross join unnest(c.keys) k);
    perform lock_keys(v_keys);
    if v_ids = '{}' and exists (select from waiter where lane = v_lane.id) then
        return; -- other transactions hold the rows, perhaps to regroup them, so the lane stays marked
    end if;

    if not exists (select from unnest(v_belong) c where c.lane <> v_lane.id or c.keys is null) then
        -- All of these executions are in the right lane, or the lane has none any more.
        perform restore_gates(array[v_lane.id], 'regroup');
    else
        select array_agg(c) filter (where c.keys is not null), array_agg(c) filter (where c.keys is null)
        into v_belong, v_free
        from unnest(v_belong) c join waiter w on w.execution_id = c.id and w.lane = v_lane.id;
        perform leave_line(array(select c.id from unnest(v_belong) c), false);
        if v_free is not null then
            perform leave_line(array(select c.id from unnest(v_free) c), true);
            messages := admit(v_free, '{}');
        end if;
        if v_belong is not null then
            perform join_line(v_belong);
        end if;
    end if;
    messages := messages || promote(v_keys);
    regrouped := true;
end $$;
