-- Take attempts away from a worker that is gone, and settle the executions by their recovery policies (after_loss). The policy of
-- a task in a workflow replaces that of its action. An execution that runs again keeps its place in line (settle_moves). An execution
-- with a requested end keeps the reason of the request, and ends as requested if it does not run again. `moved`
-- are the executions that this worker still had. Another worker may have claimed an execution meanwhile, or this worker's report
-- may have been committed.
-- planner: lookups
create or replace function recover_executions(
    p_worker uuid, p_ids uuid[], p_reason text, out messages message[], out moved uuid[]
)
language plpgsql
as $$
declare
    v_error constant jsonb := jsonb_build_object('type', 'WorkerLost', 'message', p_reason);
    v_ended ended[];
    v_again uuid[];
    v_limited uuid[];
begin
    with changed as (
        update execution e
        set status = case after_loss(d.ends_as, e.recoveries, d.recovery) when 'requested' then 'requested'
                     else coalesce(e.ends_as, after_loss(d.ends_as, e.recoveries, d.recovery)) end,
            recoveries = least(e.recoveries::bigint + 1, 2147483647), claim = null, since = clock_timestamp(),
            reason = case when e.ends_as is null then p_reason else coalesce(e.reason, p_reason) end,
            finished_at = case when after_loss(d.ends_as, e.recoveries, d.recovery) <> 'requested' then clock_timestamp() end
        from (
            -- A durable function with a requested end still has to clean up while it is running. It is requested again, and its
            -- next attempt cleans up.
            select x.id, case x.status when 'canceling' then x.ends_as end as ends_as,
                coalesce(p.options -> 'recovery', d.body -> 'recovery') as recovery
            from execution x join definition d on d.id = x.definition_id left join payload p on p.execution_id = x.id
            where x.id = any (p_ids)
        ) d
        where e.id = any (p_ids) and e.claim = p_worker and e.status in ('running', 'canceling') and d.id = e.id
        returning e.id, e.status, e.parent, e.attempt, e.keys,
            case when d.ends_as is null then v_error
                 else jsonb_build_object('type', e.status, 'message', e.reason) end as error
    ), tried as (
        insert into attempt (execution_id, attempt, outcome, worker, error)
        select id, attempt, 'lost', p_worker::text, v_error from changed
        on conflict do nothing
    )
    select coalesce(array_agg(id), '{}'), array_agg(id) filter (where status = 'requested'),
        array_agg(id) filter (where keys is not null),
        array_agg((id, parent, status, true, true, null, error)::ended) filter (where status <> 'requested')
    into moved, v_again, v_limited, v_ended from changed;
    messages := settle_moves(v_ended, v_again, held_by(v_limited));
end $$;
