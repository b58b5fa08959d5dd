-- Limits changed: everybody who waits for these executions' namespaces, or under these limits, is to be looked at anew.
-- The caller holds the placement alone, so nobody promotes or joins a line meanwhile.
create function limits_changed(p_namespaces integer[], p_limits integer[]) returns void
language plpgsql
as $$
begin
    update lane set gate = 'regroup', moved_at = clock_timestamp() where namespace_id = any (p_namespaces);
    delete from wake where split_part(key, ':', 1) = any (p_limits::text[]);
    insert into wake (key) select distinct gate from lane where split_part(gate, ':', 1) = any (p_limits::text[]);
end $$;

-- Puts those whose limits changed into the lines where they belong now, a lane's p_limit first at a time. They keep the
-- instant at which they became ready, and with it their place.
create function regroup(p_limit integer) returns setof staged
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
as $$
declare
    v_lane lane;
    v_ids uuid[];
    v_wanted wanted[];
    v_free uuid[];
begin
    select * into v_lane from lane where gate = 'regroup' order by rank, place, ready_at, execution_id limit 1;
    if not found then
        return;
    end if;
    v_ids := array(select w.execution_id from waiter w where w.lane = v_lane.id
                   order by w.rank, w.turn, w.ready_at, w.execution_id limit p_limit);
    v_ids := array(select x.id from (select id from execution where id = any (v_ids) and status = 'queued'
                                     order by id for no key update skip locked) x);
    perform lock_placement();
    v_wanted := in_line(array(select w from wanted_keys(v_ids) w));
    perform lock_keys(v_lane.keys || array(select distinct k from unnest(v_wanted) w, unnest(w.keys) k));
    if v_ids = '{}' and exists (select from waiter where lane = v_lane.id) then
        return; -- others have those rows, perhaps to do this very thing: the lane is not done
    end if;

    if not exists (select from unnest(v_wanted) w where w.lane is distinct from v_lane.id) then
        -- All of them wait where they should (or nobody does any more).
        update lane set gate = keys[1], moved_at = clock_timestamp() where id = v_lane.id and gate = 'regroup';
    else
        with gone as (delete from waiter where lane = v_lane.id and execution_id = any (v_ids) returning execution_id)
        select array_agg(w) filter (where w.keys is not null), array_agg(w.id) filter (where w.keys is null)
        into v_wanted, v_free
        from gone g join unnest(v_wanted) w on w.id = g.execution_id;
        if v_free is not null then
            return query select * from start_unlimited(v_free, 'queued');
        end if;
        if v_wanted is not null then
            update execution e set keys = w.keys from unnest(v_wanted) w where e.id = any (v_ids) and e.id = w.id;
            perform enqueue(v_wanted);
        end if;
    end if;
    perform find_heads(array[v_lane.id]);
    return query select * from promote(v_lane.keys || array(select distinct k from unnest(v_wanted) w, unnest(w.keys) k));
    return query select null::bigint, 'regrouped', v_ids;
end $$;

-- Looks again at keys that somebody freed a slot of without being able to lock what else it takes, of which the rate
-- allows another start now, or whose limit changed; and at executions whose worker has come.
create function wake_keys(p_limit integer) returns setof staged
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
as $$
declare
    v_now timestamptz := clock_timestamp();
    v_due text[] := array(select distinct x.key from (select key from wake where at <= v_now order by at limit p_limit) x);
begin
    if v_due = '{}' then
        return;
    end if;
    perform lock_keys(keys_around(v_due));
    delete from wake where key = any (v_due) and at <= v_now;
    if found then
        return query select null::bigint, 'woken', '{}'::uuid[];
        return query select * from promote(v_due);
    end if;
end $$;
