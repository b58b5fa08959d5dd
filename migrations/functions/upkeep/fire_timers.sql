-- Delete at most `p_limit` due timers of one kind, and act on them. `ready` schedules a retry or a delayed execution. `wake`
-- wakes a durable function that slept. `total`, `start`, `queued` and `expires` end an execution as timeout. `late` reports one
-- as late. `spent` cancels one that a spent budget refuses, `yield` one that must give way, and `orphan` one that ran inside a
-- durable function that has ended. `fired` is the number of timers. Some may have had no effect, since their execution has ended
-- or gone on meanwhile.
-- planner: indexes
create or replace function fire_timers(
    p_limit integer, out messages message[], out canceling uuid[], out fired integer
)
language plpgsql
as $$
declare
    v_now timestamptz := clock_timestamp();
    v_kind text;
    v_ids uuid[];
begin
    messages := '{}';
    canceling := '{}';
    -- A transaction handles one kind, so that it locks all rows before all keys.
    select kind into v_kind from timer
    where kind in ('ready', 'total', 'start', 'queued', 'expires', 'yield', 'orphan', 'spent', 'wake', 'late') order by due_at limit 1;
    with due as (
        delete from timer t using (
            select due_at, execution_id, kind from timer
            where due_at <= v_now and kind = v_kind
            order by due_at limit p_limit for update skip locked
        ) d
        where t.due_at = d.due_at and t.execution_id = d.execution_id and t.kind = d.kind
        returning t.execution_id
    )
    select coalesce(array_agg(execution_id), '{}') into v_ids from due;
    fired := cardinality(v_ids);
    if fired = 0 then
        return;
    elsif v_kind = 'ready' then
        messages := schedule_due(v_ids);
    elsif v_kind = 'wake' then
        messages := wake_functions(v_ids, 'the time until which the execution waited has come');
    elsif v_kind = 'total' then
        select s.messages, s.canceling into messages, canceling
        from stop_executions(v_ids, 'timeout', 'its time to complete ran out') s;
    elsif v_kind in ('start', 'queued') then
        messages := end_waits(v_ids, v_kind);
    elsif v_kind = 'expires' then
        messages := end_unstarted(v_ids);
    elsif v_kind = 'late' then
        messages := raise_late(v_ids);
    elsif v_kind = 'spent' then
        messages := refuse_spent(v_ids);
    elsif v_kind = 'yield' then
        select c.messages, c.canceling into messages, canceling
        from cancel_executions(v_ids, 'gave way to a newer one (when_full: cancel_running)') c;
    elsif v_kind = 'orphan' then
        select c.messages, c.canceling into messages, canceling
        from cancel_executions(v_ids, 'the function that ran it has ended') c;
    end if;
end $$;
