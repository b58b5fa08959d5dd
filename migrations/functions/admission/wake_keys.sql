-- Handle at most `p_limit` due wake rows: promote at the keys that they name. For a row that names a namespace, lanes that stood
-- aside and have a live worker now wait at their gates again (restore_gates). A key has a wake row for several reasons. For
-- example, its rate permits a start now, its limit has changed, or a slot was freed without the locks of all keys involved.
-- The rows of a limit that is being regrouped stay until its lanes are regrouped.
-- `woken` is true if this call deleted a wake row or took back executions. Then the caller calls again.
-- planner: lookups
create or replace function wake_keys(p_limit integer, out messages message[], out woken boolean)
language plpgsql
as $$
declare
    v_now timestamptz := clock_timestamp();
    v_shut constant integer[] := regrouping_limits();
    v_keys limit_key[];
    v_spaces integer[];
    v_lanes uuid[];
begin
    messages := '{}';
    woken := false;
    -- A wake row names a key or a namespace. The columns of the other are null, and match nothing in the queries below.
    select array_agg(distinct (x.limit_id, x.group_value)::limit_key), array_agg(distinct x.namespace_id)
    into v_keys, v_spaces
    from (
        select * from wake where at <= v_now and (limit_id is null or limit_id <> all (v_shut)) order by at limit p_limit) x;
    if v_keys is null then
        return;
    end if;
    -- return_blocked locks rows, and rows are locked before keys. So if it finds executions, it is all that this transaction
    -- does, and the wake rows stay for the next call.
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
    insert into wake (namespace_id) -- each call restores at most p_limit lanes, so a new wake row leads to the others
    select n.id from namespace n
    where n.id = any (v_spaces) and n.away_since is null
        and exists (select from lane l where l.namespace_id = n.id and l.gate_kind = 'worker');
    messages := promote(v_keys);
end $$;
