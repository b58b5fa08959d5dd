-- A key that an execution holds a slot of.
create type held as (execution_id uuid, key text);

-- Whether an execution keeps its slots while it waits for an answer: all of them, if one of its limits says so. None
-- holds a slot while it waits for another one.
create function keeps_slots(p_keys text[]) returns boolean
language plpgsql stable
as $$
begin
    return exists (select from unnest(p_keys) k join concurrency_limit l on l.id = split_part(k, ':', 1)::integer
                   where l.while_waiting = 'keep');
end $$;

-- Frees slots and promotes who waits for them. Call it after the rows were moved (rows before keys).
create function free_slots(p_held held[]) returns setof staged
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
as $$
begin
    perform lock_keys(keys_around(array(select distinct h.key from unnest(p_held) h)));
    return query select * from give_back(p_held);
end $$;

-- The same for whoever has locked the keys.
create function give_back(p_held held[]) returns setof staged
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
as $$
begin
    -- Each is looked up, whatever the plan was made for: a scan of all slots would do as well for a table that is small.
    delete from slot where ctid = any (array(
        select x.ctid from unnest(p_held) h cross join lateral (
            select s.ctid from slot s where s.key = h.key and s.execution_id = h.execution_id offset 0) x));
    return query select * from promote(array(select distinct h.key from unnest(p_held) h));
end $$;

-- The same for executions that ended or went back in any way, whether they held slots or stood in line. Whoever moves
-- rows of executions himself calls this after it, in the same transaction; for those without limits it does nothing.
create function leave_limits(p_ids uuid[]) returns setof staged
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
as $$
declare
    v_held held[];
    v_keys text[];
    v_lanes text[];
begin
    select array_agg((x.id, x.key)::held order by x.key) into v_held
    from (select e.id, unnest(e.keys) as key from execution e where e.id = any (p_ids)) x;
    if v_held is null then
        return;
    end if;
    -- Who only waits frees nothing: no other keys are locked, and whoever refuses newcomers holds these already.
    v_keys := array(select distinct h.key from unnest(v_held) h);
    if exists (select from unnest(v_held) h join slot s on s.key = h.key and s.execution_id = h.execution_id) then
        v_keys := keys_around(v_keys);
    end if;
    perform lock_keys(v_keys);
    with gone as (
        delete from waiter where execution_id = any (array(select distinct h.execution_id from unnest(v_held) h))
        returning lane
    )
    select array_agg(distinct lane) into v_lanes from gone;
    if v_lanes is not null then
        perform find_heads(v_lanes);
    end if;
    return query select * from give_back(v_held);
end $$;

-- Where these lanes begin, after waiters left them from the middle of the line. An empty one goes.
create function find_heads(p_lanes text[]) returns void
language plpgsql
as $$
begin
    delete from lane l where l.id = any (p_lanes) and not exists (select from waiter w where w.lane = l.id);
    update lane l
    set rank = w.rank, turn = w.turn, ready_at = w.ready_at, execution_id = w.execution_id
    from unnest(p_lanes) p (id)
    cross join lateral (
        select * from waiter w where w.lane = p.id order by w.rank, w.turn, w.ready_at, w.execution_id limit 1
    ) w
    where l.id = any (p_lanes) and l.id = p.id and l.execution_id <> w.execution_id;
end $$;
