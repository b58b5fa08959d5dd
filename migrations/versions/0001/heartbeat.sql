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

    -- What it names is taken off first, hashed: of a thousand that it holds, none is left to look up.
    select coalesce(array_agg(x order by x), '{}') into v_missing
    from (select unnest(c.executions) as x from claim c
          where c.worker = p_process and c.claimed_at < clock_timestamp() - interval '1 second'
          except select unnest(p_ids)) o
    join execution e on e.id = o.x
    where e.claim = p_process and e.status in ('running', 'canceling');

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
        delete from claim c
        where c.worker = p_process and c.executions && v_again and not exists (
            select from unnest(c.executions) x join execution e on e.id = x
            where e.claim = p_process and e.status in ('running', 'canceling'));
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
    v_claims uuid[];
begin
    if exists (select from cluster where resumed_at > clock_timestamp() - p_stale) then
        return;
    end if;
    for r in
        -- Who left with work in hand has beaten at -infinity, from which no age can be told.
        select p.id, p.name, p.holding, isfinite(p.beat_at) as silent,
            case when isfinite(p.beat_at) then clock_timestamp() - p.beat_at else interval '0' end as age
        from process p
        where p.state <> 'dead' and p.beat_at < clock_timestamp() - p_stale
        order by p.beat_at limit p_limit for update skip locked
    loop
        update process set state = 'dead', holding = '{}', missing = '{}' where id = r.id;
        return query select null::bigint, 'dead', null::uuid[], r.id, r.name, r.age;
        -- What it still claims after this look stays, as a claim of nobody.
        v_claims := array(select c.id from claim c where c.worker = r.id);
        return query
        select s.outbox_id, s.queue, s.ids, r.id, r.name, r.age
        from recover_executions(r.id,
            array(select x from claim c, unnest(c.executions) x where c.id = any (v_claims) union select unnest(r.holding)),
            case when r.silent then format('worker %s was lost (no heartbeat for %s s)', r.name, round(extract(epoch from r.age)))
                else format('worker %s left with work in hand', r.name) end) s;
        delete from claim where id = any (v_claims);
    end loop;

    -- Claims of nobody: their commit came after their worker had left, or was taken for dead.
    for r in
        select c.worker as id, clock_timestamp() - min(c.claimed_at) as age, array_agg(distinct x) as held,
            array_agg(distinct c.id) as claims
        from claim c cross join unnest(c.executions) x
        where not exists (select from process p where p.id = c.worker and p.state <> 'dead')
        group by c.worker having max(c.claimed_at) < clock_timestamp() - p_stale limit p_limit
    loop
        -- Rows first; who waited here for another replica finds nothing left to do.
        perform from execution where id = any (r.held) order by id for no key update;
        return query select null::bigint, 'dead', null::uuid[], r.id, 'that had left', r.age;
        return query
        select s.outbox_id, s.queue, s.ids, r.id, 'that had left', r.age
        from recover_executions(r.id, r.held, format('worker %s had left', r.id)) s;
        delete from claim where id = any (r.claims);
    end loop;
end $$;
