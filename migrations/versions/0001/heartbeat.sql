-- One write for a process and all that it holds: still alive, and which of these attempts are not its own any more,
-- which are to be cancelled. What the database thinks it holds, but it named in neither of its last two beats, is
-- recovered (its claim was committed and the answer lost, or its task vanished).
-- A silence of all processes means that the database or the network was away: it is noted, and the sweeper waits.
create function beat(p_process uuid, p_ids uuid[], p_attempts smallint[], p_silence interval)
returns table (verdict text, ids uuid[])
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
as $$
#variable_conflict use_column
declare
    v_known boolean;
    v_missing uuid[];
    v_again uuid[];
begin
    update cluster set resumed_at = clock_timestamp()
    where (select max(beat_at) from process) < clock_timestamp() - p_silence;

    select coalesce(array_agg(x order by x), '{}') into v_missing
    from (select unnest(c.executions) as x from claim c
          where c.worker = p_process and c.claimed_at < clock_timestamp() - interval '1 second') o
    join execution e on e.id = o.x
    where e.claim = p_process and e.status in ('running', 'canceling') and o.x <> all (p_ids);

    select array_agg(x) into v_again
    from process p, unnest(p.missing) x where p.id = p_process and x = any (v_missing);

    update process set beat_at = clock_timestamp(), holding = p_ids, missing = v_missing
    where id = p_process and state <> 'dead';
    v_known := found;

    return query
    select case when e.status = 'canceling' and e.claim = p_process and e.attempt = d.attempt then 'canceling' else 'lost' end,
        array_agg(d.id)
    from unnest(p_ids, p_attempts) as d (id, attempt)
    left join execution e on e.id = d.id
    where not v_known or e.id is null or e.claim is distinct from p_process or e.attempt <> d.attempt
        or e.status <> 'running'
    group by 1;
    if v_again is not null then
        perform recover_executions(p_process, v_again, 'its worker does not know of it');
        return query select 'missing', v_again;
    end if;
    return query select case when p.state = 'cordoned' then 'cordoned' else 'active' end, '{}'::uuid[]
    from process p where p.id = p_process and p.state <> 'dead';
end $$;

-- Takes everything away from processes whose last heartbeat is older than p_stale; a few workers at a time. Does
-- nothing until p_stale after a silence of all processes, since then healthy ones look stale too.
create function sweep(p_stale interval, p_limit integer)
returns table (outbox_id bigint, queue text, ids uuid[], worker uuid, name text, age interval)
language plpgsql
as $$
#variable_conflict use_column
declare
    r record;
begin
    if exists (select from cluster where resumed_at > clock_timestamp() - p_stale) then
        return;
    end if;
    for r in
        select p.id, p.name, clock_timestamp() - p.beat_at as age from process p
        where p.state <> 'dead' and p.beat_at < clock_timestamp() - p_stale
        order by p.beat_at limit p_limit for update skip locked
    loop
        update process set state = 'dead', holding = '{}', missing = '{}' where id = r.id;
        return query select null::bigint, 'dead', null::uuid[], r.id, r.name, r.age;
        return query
        select s.outbox_id, s.queue, s.ids, r.id, r.name, r.age
        from recover_executions(r.id,
            coalesce((select array_agg(x order by x) from claim c, unnest(c.executions) x where c.worker = r.id), '{}'),
            format('worker %s was lost (no heartbeat for %s s)', r.name, round(extract(epoch from r.age)))) s;
        delete from claim where worker = r.id;
    end loop;
end $$;
