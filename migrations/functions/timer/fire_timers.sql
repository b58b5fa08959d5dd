-- Takes due timers, a batch at a time, and acts on them. A retry or delay that is due is staged as requested; an
-- execution that is past its time ends as timeout; one that must give way is cancelled. Returns how many were `fired`, some
-- perhaps in vain: an execution may have ended while its timer was taken.
-- planner: indexes
create or replace function fire_timers(
    p_limit integer, out messages message[], out canceling uuid[], out fired integer
)
language plpgsql
as $$
declare
    v_late constant text := 'its time to complete ran out';
    v_now timestamptz := clock_timestamp();
    v_kind text;
    v_ids uuid[];
    v_cancelled message[];
begin
    messages := '{}';
    canceling := '{}';
    -- One kind at a time: so each transaction locks rows first, and then keys.
    select kind into v_kind from timer
    where due_at <= v_now and kind in ('ready', 'expire', 'start', 'yield') order by due_at limit 1;
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
        messages := stage('execution.requested', v_ids, 50);
    elsif v_kind = 'expire' then
        perform lock_runs(v_ids);
        messages := (stop_workflows(v_ids, 'timeout', v_late)).messages;
        messages := messages || (end_executions(v_ids,
            array['requested', 'queued', 'scheduled', 'waiting'], 'timeout', v_late, null)).messages;
        select c.messages, c.canceling into v_cancelled, canceling from cancel_executions(v_ids, v_late) c;
        messages := messages || v_cancelled;
    elsif v_kind = 'start' then
        messages := (end_executions(array(select id from execution where id = any (v_ids) and attempt = 0),
            array['requested', 'queued', 'scheduled'], 'timeout', 'it did not start in time', null)).messages;
    elsif v_kind = 'yield' then
        select c.messages, c.canceling into messages, canceling
        from cancel_executions(v_ids, 'gave way to a newer one (when_full: cancel_running)') c;
    end if;
end $$;
