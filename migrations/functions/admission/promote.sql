-- Lets those start who wait before these keys (whose locks the caller holds), as far as there is room: in the order
-- of rank, turn and the instant at which they became ready. Costs what is started, however many wait. Of very many a
-- part is started, and a wake row sees to the rest.
-- planner: lookups
create or replace function promote(p_keys text[]) returns message[]
language plpgsql
as $$
declare
    v_messages message[];
    v_gates text[];
    v_shared boolean;
    v_rooms room[];
    v_away boolean;
    v_chosen chosen[];
    v_behind chosen[];
    v_admitted uuid[];
    v_skipped uuid[];
    v_stuck text[] := '{}';
    v_lanes text[];
begin
    select array_agg(distinct k), bool_or(k like 'worker:%' or exists (
        select from lane l where l.gate = k and cardinality(l.keys) > 1))
    into v_gates, v_shared
    from unnest(p_keys) k where exists (select from lane l where l.gate = k);
    if v_gates is null then
        return '{}';
    elsif v_shared then
        -- Some need other keys too. All are looked at together, so that nobody takes a slot before an older one who
        -- needs both.
        return promote_shared(v_gates, p_keys);
    end if;

    v_rooms := array(select m from key_room(v_gates) m);
    with first as (
        select w.lane, w.rank, w.turn, w.ready_at, w.execution_id, greatest(w.since, l.moved_at) as since,
            l.keys, l.fair, l.gate, least(m.free, 1000) as free, n.away_since is not null as away,
            n.queue, n.envelope,
            row_number() over (partition by m.key order by w.rank, w.turn, w.ready_at, w.execution_id) as n
        from unnest(v_rooms) m
        cross join lateral (
            select * from lane l where l.gate = m.key
            order by l.rank, l.place, l.ready_at, l.execution_id limit least(m.free, 1000)
        ) l
        join namespace n on n.id = l.namespace_id
        cross join lateral (
            select * from waiter w
            where w.lane = l.id
                and (w.rank, w.turn, w.ready_at, w.execution_id) >= (l.rank, l.turn, l.ready_at, l.execution_id)
            order by w.rank, w.turn, w.ready_at, w.execution_id limit least(m.free, 1000) + 1
        ) w
        where m.free > 0
    ), numbered as (
        select (lane, rank, turn, ready_at, execution_id, since, keys, fair, gate, queue, envelope)::chosen as c,
            n <= free as chosen, away
        from first
    )
    select array_agg(c) filter (where chosen), coalesce(array_agg(c) filter (where not chosen), '{}'), bool_or(away)
    into v_chosen, v_behind, v_away from numbered;
    if v_away then
        -- Nobody lives who would run them: they let others pass, until a worker comes.
        with moved as (
            update lane l set gate = 'worker:' || n.id, moved_at = clock_timestamp()
            from namespace n where l.gate = any (v_gates) and n.id = l.namespace_id and n.away_since is not null
            returning l.gate
        )
        insert into wake (key) select distinct gate from moved; -- one may just have come, and seen nobody
        return promote(p_keys);
    elsif v_chosen is null then
        return '{}';
    end if;
    select messages, admitted into v_messages, v_admitted from start_admitted(v_chosen, v_rooms, 'queued');
    if cardinality(v_admitted) < cardinality(v_chosen) then
        -- Somebody is about to end these. Should he not, their keys are looked at again.
        v_skipped := array(select c.execution_id from unnest(v_chosen) c except select unnest(v_admitted));
        v_behind := v_behind || array(select c from unnest(v_chosen) c where c.execution_id = any (v_skipped));
        v_chosen := array(select c from unnest(v_chosen) c where c.execution_id <> all (v_skipped));
        update waiter set since = clock_timestamp() where execution_id = any (v_skipped);
        v_stuck := array(select distinct c.gate from unnest(v_behind) c where c.execution_id = any (v_skipped));
        insert into wake (key, at) select k, clock_timestamp() + interval '100 milliseconds' from unnest(v_stuck) k;
    end if;

    -- Where each lane begins now; one that is empty goes.
    v_lanes := array(select distinct c.lane from unnest(v_chosen) c);
    with passed as (
        select (c).lane, (c).rank, (c).turn, (c).ready_at, (c).execution_id, gone
        from (select c, true as gone from unnest(v_chosen) c union all select c, false from unnest(v_behind) c) x
    ), begins as (
        select lane, count(*) filter (where gone) as started,
            (array_agg((rank, turn, ready_at, execution_id)::place order by rank, turn, ready_at, execution_id)
                filter (where not gone))[1] as head
        from passed group by lane
    ), empty as (
        delete from lane l using begins b where l.id = any (v_lanes) and l.id = b.lane and b.head is null
    )
    update lane l
    set rank = (b.head).rank, turn = (b.head).turn, ready_at = (b.head).ready_at,
        execution_id = (b.head).execution_id, admitted = l.admitted + b.started
    from begins b where l.id = any (v_lanes) and l.id = b.lane and b.head is not null;

    -- Before these some are left who have room still (there were very many), or wait for the next instant of their rate.
    v_gates := array(select m.key from unnest(v_rooms) m
                     where (m.rated or m.free > 1000) and m.key <> all (v_stuck)
                         and exists (select from lane l where l.gate = m.key));
    if v_gates <> '{}' then
        insert into wake (key) select m.key from key_room(v_gates) m where m.free > 0;
    end if;
    return v_messages;
end $$;
