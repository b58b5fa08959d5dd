-- Write the heartbeat of a process, and compare the attempts that it names with those in the database. `p_silence` is for
-- note_silence, which runs first. `known` is false for a process that was marked dead. `cordoned` is true if the process must
-- take no more work. The attempts are:
-- - `lost`: named attempts that the process no longer has.
-- - `canceling`: attempts that the process has to cancel.
-- - `missing`: attempts that the database has for the process, and that neither of its last two heartbeats named. Either the
--   answer to the claim was lost, or the task vanished. The process recovers them.
-- Two kinds of claims count as missing only after 10 s. A worker looks for the lost notification of an assigned claim itself, and
-- earlier than that. For a worker that calls a gateway, the answer to its take may be on the way for longer than two heartbeats.
-- That worker repeats a take without an answer.
-- planner: lookups
create or replace function beat(
    p_process uuid, p_ids uuid[], p_attempts integer[], p_silence interval, p_executors jsonb default null,
    out known boolean, out cordoned boolean, out lost uuid[], out canceling uuid[], out missing uuid[]
)
language plpgsql
as $$
declare
    v_missing uuid[];
    v_state text;
begin
    perform note_silence(p_silence);

    -- The named attempts are subtracted first, by hash. Even for a process with a thousand attempts, usually none is left to look
    -- up.
    select coalesce(array_agg(x order by x), '{}') into v_missing
    from (select c.x from (select unnest(n.executions) as x, n.claimed_at
                  < clock_timestamp() - case when n.assigned or w.session is not null then interval '10 seconds'
                                        else interval '1 second' end as old
              from claim n join process w on w.id = n.worker where n.worker = p_process) c
          -- The claim of an earlier attempt stays while it names another attempt that runs. The latest claim counts.
          group by c.x having bool_and(c.old)
          except select unnest(p_ids)) o
    join execution e on e.id = o.x
    where e.claim = p_process and e.status in ('running', 'canceling');

    missing := array(select x from process p, unnest(p.missing) x where p.id = p_process and x = any (v_missing));

    update process p set beat_at = clock_timestamp(), holding = p_ids, missing = v_missing,
        executors = coalesce(p_executors, p.executors)
    where p.id = p_process and p.state <> 'dead'
    returning p.state into v_state;
    known := found;
    cordoned := coalesce(v_state = 'cordoned', false);

    select coalesce(array_agg(x.id) filter (where x.asked), '{}'), coalesce(array_agg(x.id) filter (where not x.asked), '{}')
    into canceling, lost
    from (
        select d.id, coalesce((e.status = 'canceling' or e.ends_as is not null) and e.claim = p_process and e.attempt = d.attempt, false) as asked
        from unnest(p_ids, p_attempts) as d (id, attempt)
        left join execution e on e.id = d.id
        where not known or e.claim is distinct from p_process or e.attempt <> d.attempt
            or e.status <> 'running' or e.ends_as is not null
    ) x;
    if missing <> '{}' then
        -- Another transaction may be requesting the end of one of these executions. This one waits for it, and then the execution
        -- ends as requested.
        perform from execution where id = any (missing) order by id for no key update;
        perform recover_executions(p_process, missing, 'its worker does not know of it');
        -- As in finish_remotely: if a submit adds an execution to one of these claims at this moment, the delete sees it.
        perform from claim where worker = p_process and executions && missing order by id for update;
        delete from claim c
        where c.worker = p_process and c.executions && missing and not exists (
            select from unnest(c.executions) x join execution e on e.id = x
            where e.claim = p_process and e.status in ('running', 'canceling'));
    end if;
end $$;
