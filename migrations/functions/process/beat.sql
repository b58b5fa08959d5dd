-- One write for a process and all that it holds: still alive, and which of these attempts are not its own any more,
-- which are to be cancelled. What the database thinks it holds, but it named in neither of its last two beats, is
-- recovered (its claim was committed and the answer lost, or its task vanished).
-- A silence of all processes means that the database or the network was away: it is noted, and the sweeper waits.
-- planner: lookups
create or replace function beat(p_process uuid, p_ids uuid[], p_attempts smallint[], p_silence interval)
returns table (verdict text, ids uuid[])
language plpgsql
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
