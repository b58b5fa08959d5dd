-- Locks admission keys, always in the same order, until the transaction ends. What is counted or decided for a key
-- is read in a later statement, so that it sees what the lock's former holder committed.
create function lock_keys(p_keys text[]) returns void
language plpgsql
as $$
declare
    v_key text;
begin
    for v_key in select distinct k from unnest(p_keys) k order by 1 loop
        perform pg_advisory_xact_lock(hashtextextended(v_key, 7));
    end loop;
end $$;

-- The key of a limit for an execution: the limit's id and, where it is grouped, the values of its parameters.
-- A missing value is a group of its own.
create function admission_key(p_limit_id integer, p_by text[], p_params jsonb) returns text
language sql immutable
as $$
    select p_limit_id || ':' || coalesce(
        (select case when length(g) <= 80 then g else left(g, 40) || md5(g) end
         from (select string_agg(coalesce(p_params #>> string_to_array(path, '.'), '-'), '|' order by n) as g
               from unnest(p_by) with ordinality as b (path, n)) x), '')
$$;

-- Lets waiters of these keys (whose locks the caller holds) start, as far as there is room: requested first, started
-- first, within a rank and a turn. One that needs other keys too is passed over while those are full; when such a key
-- cannot be locked in order, a wake row sees to it later.
create function promote(p_keys text[]) returns setof staged
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
as $$
declare
    v_chosen uuid[] := '{}';
    v_several uuid[];
    v_waiter record;
    v_key text;
    v_ok boolean;
    v_passed integer;
    v_held text[] := p_keys;
    v_queue text;
    v_size integer;
    v_moved uuid[];
begin
    -- Waiters of a single key: all keys at once, each up to its room.
    select coalesce(array_agg(w.execution_id) filter (where cardinality(w.keys) = 1), '{}'),
        array_agg(distinct r.key) filter (where cardinality(w.keys) > 1)
    into v_chosen, v_several
    from key_room(p_keys) r
    cross join lateral (
        select execution_id, keys from waiter where key = r.key
        order by rank, turn, ready_at, execution_id limit greatest(r.room, 0)
    ) w;

    if v_several is not null then
        -- Some heads wait for several keys: go through those keys one waiter at a time, in order.
        select coalesce(array_agg(x), '{}') into v_chosen from unnest(v_chosen) x
        where not exists (select from waiter w where w.execution_id = x and w.key = any (v_several));
        perform admit_waiters(v_chosen, p_keys);
        foreach v_key in array v_several loop
            v_passed := 0;
            for v_waiter in
                select w.execution_id, w.keys from waiter w where w.key = v_key
                order by rank, turn, ready_at, execution_id limit 1000
            loop
                exit when (select room from key_room(array[v_key])) <= 0;
                if v_passed >= 500 then
                    -- Many heads are blocked elsewhere. Their own keys will wake them.
                    exit;
                end if;
                v_ok := true;
                for i in 1 .. cardinality(v_waiter.keys) loop
                    if not v_waiter.keys[i] = any (v_held) then
                        if pg_try_advisory_xact_lock(hashtextextended(v_waiter.keys[i], 7)) then
                            v_held := v_held || v_waiter.keys[i];
                        else
                            insert into wake (key) values (v_key) on conflict (key) do nothing;
                            v_ok := false;
                        end if;
                    end if;
                end loop;
                if v_ok and not exists (select from key_room(v_waiter.keys) where room <= 0) then
                    perform admit_waiters(array[v_waiter.execution_id], v_waiter.keys);
                    v_chosen := v_chosen || v_waiter.execution_id;
                else
                    v_passed := v_passed + 1;
                end if;
            end loop;
        end loop;
    elsif v_chosen <> '{}' then
        perform admit_waiters(v_chosen, p_keys);
    end if;

    if v_chosen <> '{}' then
        insert into live (execution_id) select unnest(v_chosen);
        for v_queue, v_size, v_moved in
            with moved as (
                update execution e
                set status = case when n.queue like 'work.%' then 'scheduled' else 'running' end
                from namespace n
                where e.id = any (v_chosen) and e.status = 'queued' and n.id = e.namespace_id
                returning e.id, e.ready_at, n.queue, n.envelope
            )
            select queue, min(envelope), array_agg(id order by ready_at, id) from moved group by queue
        loop
            return query select * from stage(v_queue, v_moved, v_size);
        end loop;
    end if;
end $$;

-- How many more may start under each of these keys: the limit less its holders, and less than its rate allows.
-- Where only the rate stands in the way of a waiter, a wake row marks the next free instant.
create function key_room(p_keys text[]) returns table (key text, room bigint)
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
as $$
#variable_conflict use_column
declare
    r record;
    v_used bigint;
    v_room bigint;
begin
    for r in
        select k.key, l.id, case when l.active then l.max else 2147483647 end as max,
            case when l.active then l.rate_count end as rate_count, l.rate_seconds,
            (select count(*) from slot s where s.key = k.key) as held
        from unnest(p_keys) k (key) join concurrency_limit l on l.id = split_part(k.key, ':', 1)::integer
    loop
        v_room := r.max - r.held;
        if r.rate_count is not null and v_room > 0 then
            select count(*) into v_used from admission a
            where a.key = r.key and a.admitted_at > clock_timestamp() - make_interval(secs => r.rate_seconds);
            v_room := least(v_room, r.rate_count - v_used);
            if v_room <= 0 and exists (select from waiter w where w.key = r.key) then
                insert into wake as w (key, at)
                select r.key, min(a.admitted_at) + make_interval(secs => r.rate_seconds)
                from admission a
                where a.key = r.key and a.admitted_at > clock_timestamp() - make_interval(secs => r.rate_seconds)
                having count(*) > 0
                on conflict (key) do update set at = least(w.at, excluded.at);
            end if;
        end if;
        key := r.key;
        room := v_room;
        return next;
    end loop;
end $$;

-- Gives these waiters their slots, and writes the admission log under the keys' locks.
create function admit_waiters(p_ids uuid[], p_keys text[]) returns void
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
as $$
begin
    with gone as (
        delete from waiter where execution_id = any (p_ids)
        returning key, limit_id, execution_id, rank, ready_at, turn
    ), held as (
        insert into slot (execution_id, key, limit_id, attempt)
        select g.execution_id, g.key, g.limit_id, e.attempt + 1
        from gone g join execution e on e.id = g.execution_id
    )
    insert into admission (key, execution_id, attempt, priority, ready_at, held, allowed)
    select g.key, g.execution_id, e.attempt + 1, -g.rank, g.ready_at,
        (select count(*) from slot s where s.key = g.key)
            + row_number() over (partition by g.key order by g.rank, g.turn, g.ready_at, g.execution_id),
        l.max
    from gone g
    join execution e on e.id = g.execution_id
    join concurrency_limit l on l.id = g.limit_id
    order by g.rank, g.turn, g.ready_at, g.execution_id;
end $$;

-- requested -> queued for executions under limits, then as many as fit start at once. Locks the keys first, then the
-- rows. What finds its limit full is queued, cancelled, or makes the oldest give way, as the limit says.
create function admit_executions(p_ids uuid[]) returns setof staged
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
as $$
declare
    v_keys text[];
    v_queued uuid[];
    v_refused uuid[];
    v_yield uuid[];
begin
    select array_agg(distinct k.key) into v_keys
    from execution e
    join namespace n on n.id = e.namespace_id
    join payload p on p.execution_id = e.id
    cross join lateral unnest(n.limits) as a (limit_id)
    join concurrency_limit l on l.id = a.limit_id
    cross join lateral admission_key(l.id, l.by, p.params) as k (key)
    where e.id = any (p_ids) and e.status = 'requested' and l.active;
    if v_keys is not null then
        perform lock_keys(v_keys);
    end if;

    with moved as (
        update execution e set status = 'queued', limited = true
        where e.id = any (p_ids) and e.status = 'requested'
        returning e.id
    ) select array_agg(id) into v_queued from moved;
    if v_queued is null then
        return;
    end if;
    delete from live where execution_id = any (v_queued);

    with wanted as (
        select e.id, e.priority, e.ready_at, l.id as limit_id, l.fair, p.params,
            admission_key(l.id, l.by, p.params) as key
        from execution e
        join namespace n on n.id = e.namespace_id
        join payload p on p.execution_id = e.id
        cross join lateral unnest(n.limits) as a (limit_id)
        join concurrency_limit l on l.id = a.limit_id
        where e.id = any (v_queued) and l.active
    ), grouped as (
        select w.*, case when fair = '{}' then '' else admission_key(limit_id, fair, params) end as fair_group,
            array_agg(key) over (partition by id) as keys
        from wanted w
    )
    insert into waiter (key, rank, turn, ready_at, execution_id, limit_id, keys, fair_group)
    select g.key, -g.priority,
        case when g.fair = '{}' then 0
        else -- a turn later than the last of its group that waits, and never before those who wait now
            greatest(
                coalesce((select max(w.turn) + 1 from waiter w where w.key = g.key and w.fair_group = g.fair_group), 0),
                coalesce((select min(w.turn) from waiter w where w.key = g.key), 0)
            ) + row_number() over (partition by g.key, g.fair_group order by g.ready_at, g.id) - 1
        end,
        g.ready_at, g.id, g.limit_id, g.keys, g.fair_group
    from grouped g;

    -- Its limits were removed meanwhile: nothing to wait for.
    if exists (select from unnest(v_queued) q where not exists (select from waiter w where w.execution_id = q)) then
        return query select * from start_unlimited(
            (select array_agg(q) from unnest(v_queued) q
             where not exists (select from waiter w where w.execution_id = q)));
    end if;
    if v_keys is not null then
        return query select * from promote(v_keys);

        select array_agg(distinct w.execution_id) into v_refused
        from waiter w join concurrency_limit l on l.id = w.limit_id
        where w.execution_id = any (v_queued)
            and (l.when_full = 'cancel_new'
                or (l.max_waiting is not null
                    and (select count(*) from waiter o
                         where o.key = w.key and (o.rank, o.turn, o.ready_at, o.execution_id)
                            < (w.rank, w.turn, w.ready_at, w.execution_id)) >= l.max_waiting));
        if v_refused is not null then
            return query select * from end_executions(v_refused, array['queued'], 'cancelled',
                'refused: a limit is full', null);
        end if;

        select array_agg(o.execution_id) into v_yield
        from (select w.key, count(*) as n from waiter w join concurrency_limit l on l.id = w.limit_id
              where w.execution_id = any (v_queued) and l.when_full = 'cancel_running' group by w.key) f
        cross join lateral (
            select s.execution_id from slot s join execution e on e.id = s.execution_id
            where s.key = f.key and e.status <> 'canceling' order by s.admitted_at limit f.n) o;
        if v_yield is not null then
            -- Their keys may be others than those locked here: the canceling loop does it in order.
            insert into timer (due_at, kind, execution_id)
            select clock_timestamp(), 'yield', x from unnest(v_yield) x on conflict do nothing;
        end if;
    end if;
end $$;

-- queued -> scheduled for executions whose limits are gone.
create function start_unlimited(p_ids uuid[]) returns setof staged
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
as $$
declare
    v_queue text;
    v_size integer;
    v_moved uuid[];
begin
    for v_queue, v_size, v_moved in
        with moved as (
            update execution e
            set status = case when n.queue like 'work.%' then 'scheduled' else 'running' end, limited = false
            from namespace n
            where e.id = any (p_ids) and e.status = 'queued' and n.id = e.namespace_id
            returning e.id, n.queue, n.envelope
        )
        select queue, min(envelope), array_agg(id order by id) from moved group by queue
    loop
        insert into live (execution_id) select unnest(v_moved);
        return query select * from stage(v_queue, v_moved, v_size);
    end loop;
end $$;
