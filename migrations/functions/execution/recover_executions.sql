-- Takes attempts away from workers that are gone: they run again, or end as `abandoned` when they were lost too often,
-- or as `failed` where the action must not run twice. What its task in a workflow says of that replaces what the action
-- says. Frees slots and promotes in the same transaction.
-- planner: lookups
create or replace function recover_executions(p_worker uuid, p_ids uuid[], p_reason text) returns setof staged
language plpgsql
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
    return query select * from release(v_moved);
end $$;
