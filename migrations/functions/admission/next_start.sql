-- Return the earliest instant at which the rate of a key permits its first waiting execution to start. This is now if the key has
-- room. Return null if no execution waits at the key's gate, or if the first one waits for a slot and not for the rate. The
-- caller holds the lock of the key.
-- planner: lookups
create or replace function next_start(p_room room) returns timestamptz
language plpgsql stable
as $$
declare
    v_now timestamptz := clock_timestamp();
    v_need numeric;
    v_count numeric;
    v_seconds double precision;
begin
    if not p_room.weighted then
        return case when p_room.free > 0 then v_now end;
    end if;
    select least(coalesce(k.cost, 1), p_room.allowed) into v_need
    from (select * from lane l where l.gate_limit = p_room.limit_id and l.gate_group = p_room.group_value
          order by l.rank, l.place, l.ready_at, l.execution_id limit 1) l
    cross join lateral unnest(l.keys, l.costs) k (limit_id, group_value, cost)
    where k.limit_id = p_room.limit_id and k.group_value = p_room.group_value;
    if v_need is null or v_need <= p_room.free then
        return case when v_need is not null then v_now end;
    end if;
    select l.rate_count, l.rate_seconds into v_count, v_seconds from concurrency_limit l where l.id = p_room.limit_id;
    -- The oldest admissions leave the window one after another. This is the instant at which enough of them have left.
    return (
        select min(x.admitted_at) + make_interval(secs => v_seconds) from (
            select a.admitted_at, sum(coalesce(a.cost, 1)) over (order by a.admitted_at desc, a.ctid)
                - coalesce(a.cost, 1) as later, sum(coalesce(a.cost, 1)) over () as total
            from admission a
            where a.limit_id = p_room.limit_id and a.group_value = p_room.group_value and a.rated
                and a.admitted_at > v_now - make_interval(secs => v_seconds)
                and a.admitted_at <= v_now + make_interval(secs => v_seconds)
        ) x where x.total + v_need > v_count and x.later + v_need <= v_count);
end $$;
