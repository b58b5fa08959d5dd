-- Takes due timers, a batch at a time, and acts on them. A retry or delay that is due is staged as requested; an
-- execution that is past its time ends as timeout; one that must give way is cancelled.
-- planner: indexes
create or replace function fire_timers(p_limit integer) returns setof staged
language plpgsql
as $$
declare
    v_now timestamptz := clock_timestamp();
    v_kind text;
    v_ids uuid[];
begin
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
    select array_agg(execution_id) into v_ids from due;
    if v_ids is null then
        return;
    elsif v_kind = 'ready' then
        return query select * from stage('execution.requested', v_ids, 50);
    elsif v_kind = 'expire' then
        perform lock_runs(v_ids);
        return query select * from stop_workflows(v_ids, 'timeout', 'its time to complete ran out');
        return query select * from end_executions(v_ids,
            array['requested', 'scheduling', 'queued', 'scheduled', 'waiting'], 'timeout', 'its time to complete ran out', null);
        return query select * from cancel_executions(v_ids, 'its time to complete ran out');
    elsif v_kind = 'start' then
        return query select * from end_executions(
            coalesce((select array_agg(id) from execution where id = any (v_ids) and attempt = 0), '{}'),
            array['requested', 'scheduling', 'queued', 'scheduled'], 'timeout', 'it did not start in time', null);
    elsif v_kind = 'yield' then
        return query select * from cancel_executions(v_ids, 'gave way to a newer one (when_full: cancel_running)');
    end if;
end $$;
