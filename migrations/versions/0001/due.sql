-- Takes due timers, a batch at a time, and acts on them. A retry or delay that is due is staged as requested; an
-- execution that is past its time ends as timeout; one that must give way is cancelled.
create function fire_timers(p_limit integer) returns setof staged
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off
as $$
declare
    v_ready uuid[];
    v_expired uuid[];
    v_start uuid[];
    v_yield uuid[];
begin
    with due as (
        delete from timer t using (
            select due_at, execution_id, kind from timer
            where due_at <= clock_timestamp() and kind in ('ready', 'expire', 'start', 'yield')
            order by due_at limit p_limit for update skip locked
        ) d
        where t.due_at = d.due_at and t.execution_id = d.execution_id and t.kind = d.kind
        returning t.execution_id, t.kind
    )
    select array_agg(execution_id) filter (where kind = 'ready'),
        array_agg(execution_id) filter (where kind = 'expire'),
        array_agg(execution_id) filter (where kind = 'start'),
        array_agg(execution_id) filter (where kind = 'yield')
    into v_ready, v_expired, v_start, v_yield from due;
    if v_ready is not null then
        return query select * from stage('execution.requested', v_ready, 50);
    end if;
    if v_expired is not null then
        return query select * from end_executions(v_expired,
            array['requested', 'scheduling', 'queued', 'scheduled', 'waiting'], 'timeout', 'its time to complete ran out', null);
        return query select * from stop_workflows(v_expired, 'timeout', 'its time to complete ran out');
        return query select * from cancel_executions(v_expired, 'its time to complete ran out');
    end if;
    if v_start is not null then
        return query select * from end_executions(
            coalesce((select array_agg(id) from execution where id = any (v_start) and attempt = 0), '{}'),
            array['requested', 'scheduling', 'queued', 'scheduled'], 'timeout', 'it did not start in time', null);
    end if;
    if v_yield is not null then
        return query select * from cancel_executions(v_yield, 'gave way to a newer execution (when_full: cancel_running)');
    end if;
end $$;

-- Looks again at keys that something freed a slot of without being able to lock them in order, or whose rate allows
-- another start now.
create function wake_keys(p_limit integer) returns setof staged
language plpgsql
as $$
declare
    v_keys text[];
begin
    with gone as (
        delete from wake w using (
            select key from wake where at <= clock_timestamp() order by at limit p_limit for update skip locked
        ) d where w.key = d.key
        returning w.key
    )
    select array_agg(key) into v_keys from gone;
    if v_keys is not null then
        perform lock_keys(v_keys);
        return query select * from promote(v_keys);
    end if;
end $$;
