-- Asks for executions to end. Those that no worker has are cancelled at once; those that run become canceling, keep
-- their slots until their worker (or the sweeper) ends them, and are returned as `canceling`.
-- planner: indexes
create or replace function cancel_executions(p_ids uuid[], p_reason text) returns setof staged
language plpgsql
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
