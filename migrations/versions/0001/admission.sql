-- Puts executions in line; p_wanted tells in which. With `fair`, the first of a group that has none waiting joins the round
-- that is on, and each further one the round after its group's last; so however many one group has, others have their turn.
-- Returns the keys of lanes that are new, which nobody has looked at yet: the caller promotes there.
create function enqueue(p_wanted wanted[]) returns text[]
language plpgsql
set enable_nestloop = off set enable_hashjoin = on
as $$
declare
    v_first waiter[];
    v_new text[];
begin
    with placed as (
        insert into waiter (lane, rank, turn, ready_at, execution_id, fair_group)
        select w.lane, w.rank, case when w.fair is null then 0 else next_turn(w.fair, w.fair_group, w.rank)
            + row_number() over (partition by w.fair_group, w.rank order by w.ready_at, w.id) - 1 end,
            w.ready_at, w.id, w.fair_group
        from unnest(p_wanted) w
        returning waiter as w
    )
    select array_agg(x.w) into v_first from (
        select distinct on ((w).lane) w from placed order by (w).lane, (w).rank, (w).turn, (w).ready_at, (w).execution_id) x;

    with made as (
        insert into lane (id, namespace_id, keys, gate, fair, rank, turn, ready_at, execution_id)
        select o.lane, w.namespace_id, w.keys, w.keys[1], w.fair, o.rank, o.turn, o.ready_at, o.execution_id
        from unnest(v_first) o join unnest(p_wanted) w on w.id = o.execution_id
        on conflict (id) do nothing
        returning keys
    )
    select array_agg(distinct x.k) into v_new from (select unnest(keys) as k from made) x;
    update lane l
    set rank = o.rank, turn = o.turn, ready_at = o.ready_at, execution_id = o.execution_id
    from unnest(v_first) o
    where l.id = any (array(select lane from unnest(v_first))) and l.id = o.lane
        and (o.rank, o.turn, o.ready_at, o.execution_id) < (l.rank, l.turn, l.ready_at, l.execution_id);
    return v_new;
end $$;

-- The turn of the next one of a group: after the group's last, or with the round that is on.
create function next_turn(p_fair text, p_group text, p_rank smallint) returns bigint
language plpgsql stable
set enable_seqscan = off set enable_bitmapscan = off set enable_nestloop = on set enable_hashjoin = off
as $$
begin
    return greatest(
        coalesce((select max(o.turn) + 1 from waiter o where o.fair_group = p_group and o.rank = p_rank), 0),
        coalesce((select min(o.turn) from lane l
                  cross join lateral (select turn from waiter x where x.lane = l.id and x.rank = p_rank
                                      order by x.turn limit 1) o
                  where l.fair = p_fair), 0));
end $$;

-- requested -> scheduled for executions under limits if before each of their keys there is room for all who come now, so
-- that it does not matter who of them is first; -> queued for the others, unless a limit refuses them or makes older ones
-- give way. The caller has locked these rows as requested.
create function admit_executions(p_ids uuid[]) returns setof staged
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
as $$
declare
    v_free uuid[];
    v_wanted wanted[];
    v_behind wanted[];
    v_keys text[];
    v_counts integer[];
    v_rooms room[];
    v_new text[];
begin
    perform lock_placement();
    select array_agg(w.id) filter (where w.keys is null), array_agg(w) filter (where w.keys is not null)
    into v_free, v_wanted from wanted_keys(p_ids) w;
    if v_free is not null then
        return query select * from start_unlimited(v_free, 'requested');
        if v_wanted is null then
            return;
        end if;
    end if;
    select array_agg(k), array_agg(n) into v_keys, v_counts
    from (select k, count(*)::integer as n from (select unnest(w.keys) as k from unnest(v_wanted) w) x group by k) y;

    -- Of those that are sure to wait most is written down before the keys are locked, on which others wait. For a key for
    -- which one comes it is not worth the look.
    select * into v_wanted, v_behind from send_to_line(v_wanted, v_behind, array(
        select c.k from unnest(v_keys, v_counts) c (k, n)
        where n > 1 and exists (select from lane l where l.gate = c.k)));
    perform lock_keys(v_keys);
    if v_wanted is not null then
        v_rooms := rooms_left(v_keys, v_counts);
        select * into v_wanted, v_behind from send_to_line(v_wanted, v_behind, array(
            select m.key from unnest(v_rooms) m where m.free < 0
            union all
            select 'worker:' || n.id from (select distinct w.namespace_id as id, w.away from unnest(v_wanted) w) n
            where n.away or exists (select from lane l where l.gate = 'worker:' || n.id)
                or exists (select from lane l where l.gate = 'regroup' and l.namespace_id = n.id)));
    end if;
    if v_wanted is not null then
        return query select s.* from start_admitted(array(
            select (null, w.rank, 0, w.ready_at, w.id, null, w.keys, null, null, w.queue, w.envelope)::chosen
            from unnest(v_wanted) w), v_rooms, 'requested') s where s.queue <> 'admitted';
    end if;
    if v_behind is not null then
        v_new := enqueue(v_behind);
        if v_new is not null then
            return query select * from promote(v_new);
        end if;
        return query select * from turn_away(v_behind);
    end if;
end $$;

-- The room that is left before these keys when all who come now have started, so many for each: below 0 where they are too
-- many, or others stand there. The caller holds the keys' locks.
create function rooms_left(p_keys text[], p_counts integer[]) returns room[]
language plpgsql
set enable_nestloop = off set enable_hashjoin = on
as $$
begin
    return array(
        select (m.key, m.held, m.allowed, m.rated,
            case when exists (select from lane l where l.gate = m.key) then -1 else m.free - c.n end)::room
        from key_room(p_keys) m join unnest(p_keys, p_counts) as c (k, n) on c.k = m.key);
end $$;

-- requested -> queued for those of p_wanted that need one of these keys, or are of a namespace of which some stand before
-- `worker:<namespace>` or are about to be sorted anew; they go over to p_behind.
create function send_to_line(inout p_wanted wanted[], inout p_behind wanted[], p_closed text[])
language plpgsql
set enable_nestloop = off set enable_hashjoin = on
as $$
declare
    v_closed wanted[];
begin
    if p_closed = '{}' then
        return;
    end if;
    select array_agg(w) filter (where x.id is null), array_agg(w) filter (where x.id is not null) into p_wanted, v_closed
    from unnest(p_wanted) w left join (
        select distinct y.id
        from (select w.id, unnest(w.keys || ('worker:' || w.namespace_id)) as k from unnest(p_wanted) w) y
        join unnest(p_closed) c on c = y.k
    ) x on x.id = w.id;
    perform queue_rows(v_closed);
    p_behind := p_behind || in_line(v_closed);
end $$;

-- requested -> queued.
create function queue_rows(p_wanted wanted[]) returns void
language plpgsql
set enable_nestloop = off set enable_hashjoin = on
as $$
declare
    v_ids uuid[] := array(select w.id from unnest(p_wanted) w);
begin
    update execution e set status = 'queued', keys = w.keys from unnest(p_wanted) w where e.id = any (v_ids) and e.id = w.id;
    delete from live where execution_id = any (v_ids);
end $$;

-- -> scheduled for executions that have no limits (any more).
create function start_unlimited(p_ids uuid[], p_from text) returns setof staged
language plpgsql
as $$
declare
    v_queue text;
    v_size integer;
    v_moved uuid[];
begin
    for v_queue, v_size, v_moved in
        with moved as (
            update execution e
            set status = case when n.queue like 'work.%' then 'scheduled' when n.queue = 'waiting' then 'waiting'
                         else 'running' end, keys = null
            from namespace n
            where e.id = any (p_ids) and e.status = p_from and n.id = e.namespace_id
            returning e.id, e.ready_at, n.queue, n.envelope
        )
        select queue, envelope, array_agg(id order by ready_at, id) from moved group by queue, envelope
    loop
        insert into live (execution_id) select unnest(v_moved) where p_from = 'queued';
        return query select * from send_on(v_queue, v_moved, v_size);
    end loop;
end $$;

-- Of those that came and have to wait, the ones that a limit does not let wait. Only what never ran is turned away:
-- a retry has its place.
create function turn_away(p_wanted wanted[]) returns setof staged
language plpgsql
as $$
declare
    v_new uuid[];
    r record;
    v_free integer;
    v_excess integer;
begin
    if not exists (select from concurrency_limit l
                   where l.id = any (array(select split_part(unnest(w.keys), ':', 1)::integer from unnest(p_wanted) w))
                       and (l.when_full <> 'enqueue' or l.max_waiting is not null)) then
        return;
    end if;
    v_new := array(select w.id from unnest(p_wanted) w where w.attempt = 0);
    for r in
        select l.gate as key, c.ref, c.max, c.when_full, c.max_waiting,
            array_agg(x.execution_id order by x.rank, x.turn, x.ready_at, x.execution_id) as ids
        from waiter x join lane l on l.id = x.lane
        join concurrency_limit c on c.id = case when l.gate ~ '^[0-9]' then split_part(l.gate, ':', 1)::integer end
        where x.execution_id = any (v_new)
        group by l.gate, c.id
        having c.when_full <> 'enqueue' or c.max_waiting is not null
        order by l.gate
    loop
        -- For very many there is room that is given away bit by bit.
        v_free := (select m.free from key_room(array[r.key]) m);
        if r.when_full = 'cancel_new' then
            return query select * from end_executions(r.ids[v_free + 1:], array['queued'], 'cancelled',
                format('refused: the limit %s is full', r.ref), null);
            continue;
        end if;
        if r.max_waiting is not null then
            -- Counted no further than it takes to know how many are too many.
            select count(*) - r.max_waiting - v_free into v_excess
            from (select from lane l join waiter w on w.lane = l.id where l.gate = r.key
                  limit r.max_waiting::bigint + v_free + cardinality(r.ids)) x;
            if v_excess > 0 then
                return query select * from end_executions(r.ids[cardinality(r.ids) - v_excess + 1:], array['queued'],
                    'cancelled', format('refused: %s already wait for the limit %s', r.max_waiting, r.ref), null);
            end if;
        end if;
        if r.when_full = 'cancel_running' then
            perform give_way(r.key, r.max);
        end if;
    end loop;
end $$;

-- The oldest give way: so many of those that hold a key or wait for it that the rest fits. It is done by the timers' loop,
-- in a transaction that locks what they hold in order.
create function give_way(p_key text, p_max integer) returns void
language plpgsql
as $$
begin
    insert into timer (due_at, kind, execution_id)
    select clock_timestamp(), 'yield', x.execution_id
    from (
        select o.execution_id, row_number() over (order by o.waits, o.at, o.execution_id) as n, count(*) over () as all_of
        from (
            select false as waits, s.admitted_at as at, s.execution_id from slot s where s.key = p_key
            union all
            select true, w.ready_at, w.execution_id from lane l join waiter w on w.lane = l.id where l.gate = p_key
        ) o
        join execution e on e.id = o.execution_id
        where e.status <> 'canceling'
            and not exists (select from timer t where t.execution_id = o.execution_id and t.kind = 'yield')
    ) x
    where x.n <= x.all_of - p_max;
end $$;
