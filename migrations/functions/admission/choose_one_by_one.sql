-- Choose the next executions to start under the keys `p_gates`, where some lanes need several keys. The results, and the
-- treatment of locked rows, are those of choose_at_once. Each start changes the room of several keys. So the function takes the
-- best-placed execution of all lanes, and then the next one. A lane moves to the gate of another of its keys if that key is full,
-- or has a better-placed lane at its gate. The caller holds the locks of `p_gates`, and of the keys that keys_around returned.
-- A lane may need a key that keys_around did not return. Its lock can no longer be taken in order, so the function only tries it.
-- If that fails, or if the row of a lane's first execution is locked, nothing more starts at this gate. A wake row is written. So
-- no execution overtakes the first one.
-- planner: lookups
create or replace function choose_one_by_one(
    p_gates limit_key[], out p_chosen candidate[], out p_rooms room[], out p_again limit_key[]
)
language plpgsql
as $$
declare
    v_shut constant integer[] := regrouping_limits();
    v_open limit_key[];
    v_lane lane;
    v_gate limit_key;
    v_late limit_key[];
    v_stop limit_key;
    v_next candidate;
    v_stuck limit_key[] := '{}';
    v_passed limit_key[] := '{}';
begin
    p_chosen := '{}';
    p_rooms := key_room(p_gates);
    v_open := array(select (m.limit_id, m.group_value)::limit_key from unnest(p_rooms) m
                    where case when m.weighted then m.free >= 0 else m.free > 0 end);
    while cardinality(p_chosen) < 500 loop
        select l.* into v_lane from unnest(v_open) k cross join lateral (
            select * from lane l where l.gate_limit = k.limit_id and l.gate_group = k.group_value
            order by l.rank, l.place, l.ready_at, l.execution_id limit 1) l
        order by l.rank, l.place, l.ready_at, l.execution_id limit 1;
        exit when not found;
        v_gate := (v_lane.gate_limit, v_lane.gate_group);
        v_late := array(select k from unnest(v_lane.keys) k where not exists (
            select from unnest(p_rooms) m where m.limit_id = k.limit_id and m.group_value = k.group_value));
        if exists (select from unnest(v_late) k where not pg_try_advisory_xact_lock(7, key_lock(k))) then
            insert into wake (limit_id, group_value) values (v_gate.limit_id, v_gate.group_value);
            v_stuck := v_stuck || v_gate;
            v_open := array_remove(v_open, v_gate);
            continue;
        end if;
        p_rooms := p_rooms || key_room(v_late);
        -- The key at which this lane has to wait. It has no room for the lane's first execution. Or its limit is being regrouped. Or
        -- it is not among `v_open`, and has a better-placed lane at its gate. A key without costs comes first: at the gate of a key
        -- with costs, the lane would delay lanes behind it that need less.
        v_stop := (
            select (m.limit_id, m.group_value)::limit_key
            from (select * from unnest(v_lane.keys, v_lane.costs) k (limit_id, group_value, cost)
                  join unnest(p_rooms) r using (limit_id, group_value) offset 0) m
            where case when m.weighted then m.free < least(coalesce(m.cost, 1), m.allowed) else m.free <= 0 end
                or m.limit_id = any (v_shut) or (m.limit_id, m.group_value)::limit_key <> all (v_open) and exists (
                select from lane l
                where l.gate_limit = m.limit_id and l.gate_group = m.group_value
                    and (l.rank, l.place, l.ready_at, l.execution_id) < (v_lane.rank,
                        case when v_lane.fair_limit = m.limit_id then v_lane.turn else 0 end,
                        v_lane.ready_at, v_lane.execution_id))
            order by m.weighted limit 1);
        if v_stop = v_gate then
            v_open := array_remove(v_open, v_gate); -- the key has room, but less than the first execution needs
            continue;
        elsif v_stop.limit_id is not null then
            update lane set gate_limit = v_stop.limit_id, gate_group = v_stop.group_value, moved_at = clock_timestamp()
            where id = v_lane.id;
            if v_stop.limit_id = any (v_shut) then
                v_passed := v_passed || v_stop;
            end if;
            continue;
        end if;
        if exists (select from namespace n where n.id = v_lane.namespace_id and n.away_since is not null) then
            perform stand_aside(array[v_lane.id]);
            continue;
        end if;
        v_next := take_first(v_lane);
        if v_next.id is null then
            v_stuck := v_stuck || v_gate;
            v_open := array_remove(v_open, v_gate);
            continue;
        end if;
        p_chosen := p_chosen || v_next;
        p_rooms := array(
            select (m.limit_id, m.group_value, m.held, m.allowed, m.rated,
                m.free - case when k.limit_id is null then 0 when m.weighted then least(coalesce(k.cost, 1), m.allowed) else 1 end,
                m.weighted)::room
            from unnest(p_rooms) m
            left join unnest(v_next.keys, v_next.costs) k (limit_id, group_value, cost) using (limit_id, group_value));
        v_open := array(select k from unnest(v_open) k
                        except select (m.limit_id, m.group_value)::limit_key from unnest(p_rooms) m
                        where case when m.weighted then m.free < 0 else m.free <= 0 end);
    end loop;
    p_again := array(
        select (m.limit_id, m.group_value)::limit_key from unnest(p_rooms) m
        where (m.rated or cardinality(p_chosen) = 500) and (m.limit_id, m.group_value)::limit_key <> all (v_stuck)) || v_passed;
end $$;
