-- Return the room of each key: how many more executions may start. This is the limit minus its holders, bounded by the rate.
-- Under a limit with a cost, the held and the free amounts are in the limit's unit. Under a breaker, breaker_room bounds the free
-- amount. The caller holds the locks of the keys.
-- If a rate without costs is used up while slots are free, write a wake row for the instant of the next permitted start. While a
-- key with such a rate has that wake row, it gets no room, and its admissions are not counted. A wake row that is due within
-- 100 ms may instead be that of a locked execution (take_first, choose_at_once), so the admissions are counted then.
-- If the clock of the database went back, admissions have instants that are to come. Those that are more than one window ahead do
-- not count, and follow_clock moves the wake rows. So a step back of the clock lets no execution wait for longer than two windows,
-- and a step within the window lets none start too early.
create or replace function key_room(p_keys limit_key[]) returns room[]
language plpgsql
as $$
declare
    v_now timestamptz := clock_timestamp();
    v_rooms room[];
begin
    v_rooms := array(
        select (k.limit_id, k.group_value, s.held,
            case when l.cost is null then l.max when l.budget is not null then 'Infinity'::numeric
                else least(l.max, coalesce(l.rate_count, l.max)) end, l.rate_count is not null,
            case when l.breaker is not null then breaker_room(l.id, k.group_value)
                when l.cost is null then greatest(l.max - s.held, 0) else l.max - s.held end, l.cost is not null)::room
        from unnest(p_keys) k join concurrency_limit l on l.id = k.limit_id
        cross join lateral (
            select case when l.cost is null then count(*) else coalesce(sum(coalesce(s.cost, 1)), 0) end as held from slot s
            -- A limit that has only a rate may have very many holders, so they are not counted.
            where l.max < 2147483647 and s.limit_id = k.limit_id and s.group_value = k.group_value
        ) s);
    if exists (select from unnest(v_rooms) m where m.weighted and (m.rated or m.allowed = 'Infinity')) then
        v_rooms := array(
            select case when m.weighted then (m.limit_id, m.group_value, m.allowed - w.free, m.allowed, m.rated, w.free, true)::room
                else m end
            from unnest(v_rooms) m join concurrency_limit l on l.id = m.limit_id
            cross join lateral (
                select case when l.budget is not null then (
                        select b.amount - (
                            select coalesce(sum(coalesce(y.spent, y.reserved)), 0) from budget_entry y
                            where y.owner = b.owner and y.unit = b.unit)
                        from budget b where b.owner = case when l.budget is not null then m.group_value::uuid end and b.unit = l.unit)
                    when m.weighted and m.rated
                    then least(m.free, l.rate_count - coalesce(sum(coalesce(a.cost, 1)), 0)) else m.free end as free
                from admission a
                where m.weighted and m.rated and a.limit_id = m.limit_id and a.group_value = m.group_value and a.rated
                    and a.admitted_at > v_now - make_interval(secs => l.rate_seconds)
                    and a.admitted_at <= v_now + make_interval(secs => l.rate_seconds)
            ) w);
    end if;
    if not exists (select from unnest(v_rooms) m where m.rated and not m.weighted and m.free > 0) then
        return v_rooms;
    end if;

    with started as (
        select m as room, l.rate_count - a.count as free, a.first + make_interval(secs => l.rate_seconds) as next
        from unnest(v_rooms) m join concurrency_limit l on l.id = m.limit_id and m.rated and not m.weighted and m.free > 0
        cross join lateral (
            select count(*)::integer as count, min(a.admitted_at) as first from admission a
            where a.limit_id = m.limit_id and a.group_value = m.group_value and a.rated
                and a.admitted_at > v_now - make_interval(secs => l.rate_seconds)
                and a.admitted_at <= v_now + make_interval(secs => l.rate_seconds)
        ) a
        where not exists (
            select from wake w
            where w.limit_id = m.limit_id and w.group_value = m.group_value and w.at > v_now + interval '100 milliseconds')
    ), marked as (
        insert into wake (limit_id, group_value, at)
        select (room).limit_id, (room).group_value, next from started where free <= 0 and not exists (
            select from wake w
            where w.limit_id = (room).limit_id and w.group_value = (room).group_value and w.at > v_now and w.at <= next)
    )
    select array_agg((m.limit_id, m.group_value, m.held, m.allowed, m.rated, case when m.rated and not m.weighted and m.free > 0
        then greatest(least(m.free, coalesce(t.free, 0)), 0) else m.free end, m.weighted)::room) into v_rooms
    from unnest(v_rooms) m
    left join started t on (t.room).limit_id = m.limit_id and (t.room).group_value = m.group_value;
    return v_rooms;
end $$;
