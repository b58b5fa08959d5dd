-- Where a waiter stands in its lane.
create type place as (rank smallint, turn bigint, ready_at timestamptz, execution_id uuid);

-- An execution that is to start, and the place that it had in its lane.
create type chosen as (
    lane text, rank smallint, turn bigint, ready_at timestamptz, execution_id uuid, since timestamptz,
    keys text[], fair text, gate text, queue text, envelope smallint
);

-- requested or queued -> scheduled: gives these their slots, writes the admission log under the keys' locks, and stages
-- them on their routes. p_rooms tells of their keys as they were before. Skips rows that somebody else is about to end.
-- Returns also, as `admitted`, who was started.
create function start_admitted(p_chosen chosen[], p_rooms room[], p_from text) returns setof staged
language plpgsql
-- What is chosen is found by its id and hashed with what is known of it: a nested loop over arrays is quadratic.
set enable_nestloop = off set enable_hashjoin = on
as $$
declare
    v_ids uuid[] := array(select c.execution_id from unnest(p_chosen) c);
    r record;
begin
    if p_from = 'queued' then
        v_ids := array(select e.id from execution e where e.id = any (v_ids) and e.status = 'queued' for no key update skip locked);
        delete from waiter where execution_id = any (v_ids);
        insert into live (execution_id) select unnest(v_ids);
    end if;
    for r in
        with moved as (
            update execution e
            set status = case when c.queue like 'work.%' then 'scheduled' else 'running' end, keys = c.keys
            from unnest(p_chosen) c
            where e.id = any (v_ids) and e.id = c.execution_id
            returning c.*, e.attempt + 1 as attempt
        ), held as materialized (
            select m.*, unnest(m.keys) as key from moved m
        ), given as (
            insert into slot (key, execution_id, attempt) select key, execution_id, attempt from held
        ), logged as (
            -- Order is kept before one gate; at its other keys an execution never stood in line, until it is written. Nor did
            -- it where it waited in the turns of another key's groups.
            insert into admission (key, execution_id, attempt, rank, turn, ready_at, since, held, allowed, rated)
            select k.key, k.execution_id, k.attempt, k.rank, case when k.key = k.fair then k.turn else 0 end, k.ready_at,
                case when k.key = k.gate and (k.fair is null or k.fair = k.gate) then k.since else clock_timestamp() end,
                o.held + row_number() over (partition by k.key order by k.rank, k.turn, k.ready_at, k.execution_id),
                o.allowed, o.rated
            from held k join unnest(p_rooms) o on o.key = k.key
        )
        select queue, envelope, array_agg(execution_id order by rank, turn, ready_at, execution_id) as ids
        from moved group by queue, envelope
    loop
        return query select null::bigint, 'admitted', r.ids;
        return query select * from stage(r.queue, r.ids, r.envelope);
    end loop;
end $$;

-- Lets those start who wait before these keys (whose locks the caller holds), as far as there is room: in the order
-- of rank, turn and the instant at which they became ready. Costs what is started, however many wait. Of very many a
-- part is started, and a wake row sees to the rest.
create function promote(p_keys text[]) returns setof staged
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
as $$
declare
    r record;
    v_gates text[];
    v_shared boolean;
    v_rooms room[];
    v_away boolean;
    v_chosen chosen[];
    v_behind chosen[];
    v_admitted uuid[] := '{}';
    v_skipped uuid[];
    v_stuck text[] := '{}';
    v_lanes text[];
begin
    select array_agg(distinct k), bool_or(k like 'worker:%' or exists (
        select from lane l where l.gate = k and cardinality(l.keys) > 1))
    into v_gates, v_shared
    from unnest(p_keys) k where exists (select from lane l where l.gate = k);
    if v_gates is null then
        return;
    elsif v_shared then
        -- Some need other keys too. All are looked at together, so that nobody takes a slot before an older one who
        -- needs both.
        return query select * from promote_shared(v_gates, p_keys);
        return;
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
        return query select * from promote(p_keys);
        return;
    elsif v_chosen is null then
        return;
    end if;
    for r in select * from start_admitted(v_chosen, v_rooms, 'queued') loop
        if r.queue = 'admitted' then
            v_admitted := v_admitted || r.ids;
        else
            return next r;
        end if;
    end loop;
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
end $$;

-- The same for keys before which executions stand that need other keys too: the best of all lanes first, one by one.
-- A lane of which another key is full goes and stands before that one. Where somebody else has the first in line in hand,
-- or a key of his that was found too late to be locked in order, nobody passes at that gate: a wake row sees to them.
create function promote_shared(p_keys text[], p_held text[]) returns setof staged
language plpgsql
as $$
declare
    r record;
    v_lane lane;
    v_head waiter;
    v_next waiter;
    v_rooms room[] := array(
        select m from key_room(array(select k from unnest(p_keys) k where k not like 'worker:%')) m);
    v_many boolean := false;
    v_keys text[];
    v_open text[];
    v_done text[] := '{}';
    v_gate text;
    v_new text[];
    v_of integer[];
    v_space namespace;
    v_stuck text[] := '{}';
    v_chosen chosen[] := '{}';
begin
    v_keys := array(select m.key from unnest(v_rooms) m);
    v_open := array(select m.key from unnest(v_rooms) m where m.free > 0)
        || array(select k from unnest(p_keys) k where k like 'worker:%');
    loop
        v_many := cardinality(v_chosen) = 500;
        exit when v_many;
        select l.* into v_lane from unnest(v_open) k cross join lateral (
            select * from lane l where l.gate = k and l.id <> all (v_done)
            order by l.rank, l.place, l.ready_at, l.execution_id limit 1) l
        order by l.rank, l.place, l.ready_at, l.execution_id limit 1;
        exit when not found;

        v_new := array(select k from unnest(v_lane.keys) k except select unnest(v_keys));
        if exists (select from unnest(v_new) k
                   where k <> all (p_held) and not pg_try_advisory_xact_lock(7, hashtext(k) & 2047)) then
            insert into wake (key) values (v_lane.gate);
            v_open := array_remove(v_open, v_lane.gate); -- nobody overtakes him there
            continue;
        end if;
        v_rooms := v_rooms || array(select m from key_room(v_new) m);
        v_keys := array(select m.key from unnest(v_rooms) m);
        v_of := array(select array_position(v_keys, k) from unnest(v_lane.keys) with ordinality as x (k, n) order by n);

        -- Where a gate stays closed, those before it come first there, whatever room there is.
        select (v_rooms[i]).key into v_gate from unnest(v_of) i
        where (v_rooms[i]).free <= 0 or (v_rooms[i]).key <> all (v_open) and exists (
            select from lane l where l.gate = (v_rooms[i]).key and (l.rank, l.place, l.ready_at, l.execution_id) < (v_lane.rank,
                case when v_lane.fair = l.gate then v_lane.turn else 0 end, v_lane.ready_at, v_lane.execution_id))
        limit 1;
        if not found then
            select * into v_space from namespace where id = v_lane.namespace_id;
            v_gate := case when v_space.away_since is not null then 'worker:' || v_space.id end;
        end if;
        if v_gate is not null then
            update lane set gate = v_gate, moved_at = clock_timestamp() where id = v_lane.id and gate <> v_gate;
            if found and v_gate like 'worker:%' then
                insert into wake (key) values (v_gate); -- one may just have come, and seen nobody
            end if;
            v_done := v_done || v_lane.id;
            continue;
        end if;

        v_head := null;
        v_next := null;
        for r in
            select w as waiter from waiter w
            where w.lane = v_lane.id and (w.rank, w.turn, w.ready_at, w.execution_id)
                >= (v_lane.rank, v_lane.turn, v_lane.ready_at, v_lane.execution_id)
            order by w.rank, w.turn, w.ready_at, w.execution_id limit 2
        loop
            if v_head.lane is null then v_head := r.waiter; else v_next := r.waiter; end if;
        end loop;
        if not exists (select from execution e where e.id = v_head.execution_id and e.status = 'queued'
                       for no key update skip locked) then
            insert into wake (key, at) values (v_lane.gate, clock_timestamp() + interval '100 milliseconds');
            v_stuck := v_stuck || v_lane.gate;
            v_open := array_remove(v_open, v_lane.gate); -- nobody overtakes him, or those behind him
            continue;
        end if;
        for i in 1 .. cardinality(v_of) loop
            v_rooms[v_of[i]].free := (v_rooms[v_of[i]]).free - 1;
            if (v_rooms[v_of[i]]).free <= 0 then
                v_open := array_remove(v_open, (v_rooms[v_of[i]]).key);
            end if;
        end loop;
        v_chosen := v_chosen || (v_lane.id, v_head.rank, v_head.turn, v_head.ready_at, v_head.execution_id,
            greatest(v_head.since, v_lane.moved_at), v_lane.keys, v_lane.fair, v_lane.gate, v_space.queue,
            v_space.envelope)::chosen;
        if v_next.lane is null then
            delete from lane where id = v_lane.id;
        else
            update lane set rank = v_next.rank, turn = v_next.turn, ready_at = v_next.ready_at,
                execution_id = v_next.execution_id, admitted = admitted + 1
            where id = v_lane.id;
        end if;
    end loop;
    return query select * from start_admitted(v_chosen, v_rooms, 'queued') s where s.queue <> 'admitted';
    -- Before these some are left who have room still, or wait for the next instant of their rate.
    insert into wake (key)
    select m.key from key_room(array(
        select m.key from unnest(v_rooms) m
        where (m.rated or v_many) and m.key <> all (v_stuck) and exists (select from lane l where l.gate = m.key))) m
    where m.free > 0
    union all
    select k from unnest(v_open) k where v_many and k like 'worker:%';
end $$;
