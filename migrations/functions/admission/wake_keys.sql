-- Handle at most `p_limit` due wake rows: promote at the keys that they name. Lanes that stood aside, and have a live
-- worker now, wait at the gates of their keys again (restore_gates). A key has a wake row if a slot was freed without the
-- locks of all other keys involved, if its rate permits a start now, or if its limit changed. `woken` says whether this
-- call deleted a wake row.
-- planner: lookups
create or replace function wake_keys(p_limit integer, out messages message[], out woken boolean)
language plpgsql
as $$
declare
    v_now timestamptz := clock_timestamp();
    v_keys limit_key[];
    v_spaces integer[];
    v_lanes uuid[];
begin
    messages := '{}';
    woken := false;
    -- A wake row names a key or a namespace, and has nulls for the other. The nulls match nothing below.
    select array_agg(distinct (x.limit_id, x.group_value)::limit_key), array_agg(distinct x.namespace_id)
    into v_keys, v_spaces
    from (select * from wake where at <= v_now order by at limit p_limit) x;
    if v_keys is null then
        return;
    end if;
    -- Rows are locked before keys, so this is a transaction of its own. The wake rows stay for the next one.
    messages := return_blocked(v_keys, 500);
    if messages is not null then
        woken := true;
        return;
    end if;
    messages := '{}';
    v_lanes := array(
        select l.id from namespace n cross join lateral (
            select id from lane l where l.namespace_id = n.id and l.gate_kind = 'worker'
            order by l.rank, l.ready_at, l.execution_id limit p_limit) l
        where n.id = any (v_spaces) and n.away_since is null);
    perform lock_keys(keys_around(v_keys || array(
        select distinct k from lane l cross join unnest(l.keys) k where l.id = any (v_lanes))));

    -- Another replica may have handled the same wake rows first.
    delete from wake w using unnest(v_keys) k
    where w.limit_id = k.limit_id and w.group_value = k.group_value and w.at <= v_now;
    woken := found;
    delete from wake where namespace_id = any (v_spaces) and at <= v_now;
    woken := woken or found;
    if not woken then
        return;
    end if;
    v_keys := v_keys || restore_gates(v_lanes, 'worker');
    insert into wake (namespace_id) -- at most p_limit lanes at once: the rest later
    select n.id from namespace n
    where n.id = any (v_spaces) and n.away_since is null
        and exists (select from lane l where l.namespace_id = n.id and l.gate_kind = 'worker');
    messages := promote(v_keys);
end $$;
