-- Request that executions end as `p_status` (cancelled, timeout). An execution without a worker ends at once (`moved`). A running
-- execution becomes canceling (`canceling`), and the caller notifies its worker. The execution keeps its slots until its worker
-- or the sweeper ends it. A workflow is asked to stop (`stopping`). A durable function that has begun cleans up first, and is in
-- `canceling`, too.
-- Only a request by hand (`p_by_hand`) ends an execution that is already cleaning up. Requests by a limit, a timeout, a schedule
-- or a parent must not cut short the exit task or the cleanup of an earlier request.
-- planner: indexes
create or replace function request_ends(
    p_ids uuid[], p_status text, p_reason text, p_by_hand boolean,
    out messages message[], out canceling uuid[], out stopping uuid[], out moved uuid[]
)
language plpgsql
as $$
declare
    v_messages message[];
    v_told uuid[];
begin
    -- The locks keep other transactions from moving the executions between the steps. An execution that a worker was about to
    -- claim is claimed now, and becomes canceling. All rows are locked before the keys, which the last step locks.
    perform lock_runs(p_ids);
    if not p_by_hand then
        p_ids := array(select id from execution where id = any (p_ids) and ends_as is null);
    else
        update execution set ends_as = p_status, reason = p_reason -- this request replaces an earlier one
        where id = any (p_ids) and ends_as is not null and status in ('requested', 'queued', 'scheduled', 'waiting');
    end if;
    select t.messages, t.told into v_messages, v_told from tell_functions(p_ids, p_status, p_reason) t;
    with changed as (
        update execution e set status = 'canceling', ends_as = p_status, reason = p_reason
        from namespace n
        where e.id = any (p_ids) and e.id <> all (v_told) and e.status = 'running' and n.id = e.namespace_id and n.kind = 'action'
        returning e.id
    )
    select v_told || coalesce(array_agg(id), '{}') into canceling from changed;
    select v_messages || s.messages, s.stopping into v_messages, stopping from request_stops(p_ids, p_status, p_reason, p_by_hand) s;
    if p_status = 'timeout' then
        v_messages := v_messages || count_timeouts(array(select unnest(p_ids) except select unnest(v_told)), p_reason);
    end if;
    select e.messages, e.moved into messages, moved
    from end_executions(array(select unnest(p_ids) except select unnest(v_told)), array['requested', 'queued', 'scheduled', 'waiting'], p_status, p_reason, null) e;
    messages := v_messages || messages;
end $$;
