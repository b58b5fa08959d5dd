-- Ends executions that no worker reports on: cancelled, timed out, refused, dead-lettered, abandoned. Acts only on
-- those in one of the statuses p_from, and frees slots, wakes waiters and workflows in the same transaction.
-- Returns what it staged and, as `moved`, the ids that it really moved.
create function end_executions(p_ids uuid[], p_from text[], p_to text, p_reason text, p_error text)
returns setof staged
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
as $$
declare
    v_moved uuid[];
    v_roots uuid[];
begin
    with moved as (
        update execution e
        set status = p_to, reason = coalesce(p_reason, e.reason), finished_at = clock_timestamp()
        where e.id = any (p_ids) and e.status = any (p_from)
        returning e.id, e.parent, e.attempt, e.claim
    ), told as (
        insert into result (execution_id, error)
        select id, coalesce(p_error::jsonb, jsonb_build_object('type', p_to, 'message', p_reason)) from moved
    ), tried as (
        insert into attempt (execution_id, attempt, outcome, worker, error)
        select id, attempt, p_to, current_setting('application_name'), p_error::jsonb from moved where claim is not null
        on conflict do nothing
    )
    select array_agg(id), array_agg(id) filter (where parent is null) into v_moved, v_roots from moved;
    if v_moved is null then
        return;
    end if;
    return query select null::bigint, 'moved', v_moved;

    update inquiry set status = case when p_to = 'timeout' then 'timeout' else 'cancelled' end,
        answered_at = clock_timestamp()
    where execution_id = any (v_moved) and status = 'created';
    delete from event_wait where execution_id = any (v_moved);
    -- Whoever follows an execution that ended this way is told too: callbacks as well as workflows.
    return query select * from close_executions(v_moved, v_roots, v_moved);
end $$;

-- Nothing is due for these any more. Whoever is about to fire a timer of theirs waits for their rows, and is not waited for:
-- he fires it in vain.
create function drop_timers(p_ids uuid[]) returns void
language plpgsql
as $$
begin
    delete from timer where ctid = any (array(
        select ctid from timer where execution_id = any (p_ids) for update skip locked));
end $$;

-- What every end of an execution brings with it, whoever ended it: it is open no more, nothing is due for it, those that
-- belong to no workflow (p_roots) are on their way to the archive, of some (p_told) it is told, and their slots go to the
-- next in line.
create function close_executions(p_ids uuid[], p_roots uuid[], p_told uuid[]) returns setof staged
language plpgsql
as $$
begin
    delete from live where execution_id = any (p_ids);
    perform drop_timers(p_ids);
    if p_roots is not null then
        insert into finished (ids) values (p_roots);
    end if;
    if p_told is not null then
        return query select * from tell_ends(p_told);
    end if;
    return query select * from leave_limits(p_ids);
end $$;

-- Locks what is about to end: states of workflows, then rows of executions. So does whoever advances a workflow and ends
-- it then; the other way round, the two would wait for each other.
create function lock_runs(p_ids uuid[]) returns void
language plpgsql
as $$
begin
    perform make_workflows(p_ids); -- what is asked of one that has not begun is noted there too
    perform from workflow where execution_id = any (p_ids) order by execution_id for no key update;
    perform from execution where id = any (p_ids) and finished_at is null order by id for no key update;
end $$;

-- Asks for executions to end. Those that no worker has are cancelled at once; those that run become canceling, keep
-- their slots until their worker (or the sweeper) ends them, and are returned as `canceling`.
create function cancel_executions(p_ids uuid[], p_reason text) returns setof staged
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off
as $$
declare
    v_running uuid[];
begin
    -- Nobody moves them between the two: what was about to be claimed is claimed, and canceling. All rows come before the
    -- keys, which the last step locks.
    perform lock_runs(p_ids);
    with moved as (
        update execution e set status = 'canceling', reason = p_reason
        from namespace n
        where e.id = any (p_ids) and e.status = 'running' and n.id = e.namespace_id and n.queue like 'work.%'
        returning e.id
    )
    select array_agg(id) into v_running from moved;
    if v_running is not null then
        return query select null::bigint, 'canceling', v_running;
    end if;
    return query select * from stop_workflows(p_ids, 'cancelled', p_reason);
    return query select * from end_executions(p_ids,
        array['requested', 'scheduling', 'queued', 'scheduled', 'waiting'], 'cancelled', p_reason, null);
end $$;

-- Takes attempts away from workers that are gone: they run again, or end as `abandoned` when they were lost too often,
-- or as `failed` where the action must not run twice. What its task in a workflow says of that replaces what the action
-- says. Frees slots and promotes in the same transaction.
create function recover_executions(p_worker uuid, p_ids uuid[], p_reason text) returns setof staged
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
as $$
declare
    v_moved uuid[];
    v_again uuid[];
    v_final uuid[];
    v_roots uuid[];
begin
    with moved as (
        update execution e
        set status = case
                when e.status = 'canceling' then 'cancelled'
                when coalesce(d.recovery ->> 'on_worker_loss', 'rerun') = 'fail' then 'failed'
                when e.recoveries >= coalesce((d.recovery ->> 'max_recoveries')::integer, 3) then 'abandoned'
                else 'requested' end,
            recoveries = e.recoveries + 1,
            claim = null,
            ready_at = clock_timestamp(),
            finished_at = case
                when e.status = 'canceling' or coalesce(d.recovery ->> 'on_worker_loss', 'rerun') = 'fail'
                    or e.recoveries >= coalesce((d.recovery ->> 'max_recoveries')::integer, 3)
                then clock_timestamp() end,
            reason = p_reason
        from (
            select x.id, coalesce(p.options -> 'recovery', d.body -> 'recovery') as recovery
            from execution x join definition d on d.id = x.definition_id left join payload p on p.execution_id = x.id
            where x.id = any (p_ids)
        ) d
        where e.id = any (p_ids) and e.claim = p_worker and e.status in ('running', 'canceling') and d.id = e.id
        returning e.id, e.status, e.parent, e.attempt
    ), told as (
        insert into result (execution_id, error)
        select id, jsonb_build_object('type', 'WorkerLost', 'message', p_reason) from moved where status <> 'requested'
    ), tried as (
        insert into attempt (execution_id, attempt, outcome, worker, error)
        select id, attempt, 'lost', p_worker::text, jsonb_build_object('type', 'WorkerLost', 'message', p_reason)
        from moved
        on conflict do nothing
    )
    select array_agg(id), array_agg(id) filter (where status = 'requested'),
        array_agg(id) filter (where status <> 'requested'),
        array_agg(id) filter (where status <> 'requested' and parent is null)
    into v_moved, v_again, v_final, v_roots from moved;
    if v_moved is null then
        return;
    end if;
    return query select null::bigint, 'moved', v_moved;
    if v_again is not null then
        return query select * from stage('execution.requested', v_again, 50);
    end if;
    if v_final is not null then
        delete from live where execution_id = any (v_final);
        perform drop_timers(v_final);
        return query select * from tell_ends(v_final);
    end if;
    if v_roots is not null then
        insert into finished (ids) values (v_roots);
    end if;
    return query select * from leave_limits(v_moved);
end $$;
