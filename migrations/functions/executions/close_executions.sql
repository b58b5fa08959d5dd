-- Close executions that have ended, whatever ended them. Write their results, close their inquiries, and delete their timers and
-- their rows in `live`. List roots in `finished` for the archive, and traced executions in `untraced`, so that their spans are
-- sent. Stage messages for the workflows and callbacks that follow the executions, and return messages for waiting clients. Raise
-- `penstock.execution.failed` for executions that failed, timed out or were abandoned. The caller, settle_moves, releases their
-- slots.
-- A durable function cancels its open children in its last attempt. If no attempt could, since the worker was lost for the last
-- time or the next attempt was refused, timers cancel them: in another transaction, as children are locked before functions.
create or replace function close_executions(p_ended ended[]) returns message[]
language plpgsql
as $$
declare
    v_ids uuid[];
    v_unclaimed uuid[];
    v_roots uuid[];
    v_followed uuid[];
    v_failed uuid[];
    v_incomplete uuid[];
    v_messages message[];
begin
    select array_agg(e.id), array_agg(e.id) filter (where not e.claimed), array_agg(e.id) filter (where e.parent is null),
        array_agg(e.id) filter (where e.followed), array_agg(e.id) filter (where e.status in ('failed', 'timeout', 'abandoned')),
        array_agg(e.id) filter (where e.status <> 'completed')
    into v_ids, v_unclaimed, v_roots, v_followed, v_failed, v_incomplete
    from unnest(p_ended) e;

    insert into result (execution_id, result, error) select e.id, e.result, e.error from unnest(p_ended) e;
    insert into untraced (execution_id)
    select p.execution_id from payload p where p.execution_id = any (v_ids) and p.origin ? 'trace';
    delete from live where execution_id = any (v_ids);
    -- A locked timer is left alone. The loop that fires it has locked it, and waits for the row of its execution, which this
    -- transaction holds. Waiting for the timer would be a deadlock. The loop then finds the execution ended, and does nothing.
    delete from timer where ctid = any (array(
        select ctid from timer where execution_id = any (v_ids) for update skip locked));
    if v_unclaimed is not null then -- an execution that a worker had claimed has no such rows
        update inquiry i set answered_at = clock_timestamp(),
            status = case e.status when 'completed' then 'responded' when 'timeout' then 'timeout' else 'cancelled' end
        from unnest(p_ended) e
        where i.execution_id = any (v_unclaimed) and i.execution_id = e.id and i.status = 'created';
        delete from parked where execution_id = any (v_unclaimed);
        delete from backlog where execution_id = any (v_unclaimed);
        delete from held_execution where execution_id = any (v_unclaimed);
        delete from event_wait where execution_id = any (v_unclaimed);
        delete from suspended where execution_id = any (v_unclaimed);
        delete from paused_workflow where execution_id = any (v_unclaimed);
    end if;
    if v_roots is not null then
        insert into finished (ids) values (v_roots);
    end if;
    v_messages := tell_awaited(v_ids);
    if v_incomplete is not null then
        insert into timer (due_at, kind, execution_id)
        select clock_timestamp(), 'orphan', c.id
        from execution e join definition d on d.id = e.definition_id join execution c on c.parent = e.id
        where e.id = any (v_incomplete) and d.body ? 'durable' and c.finished_at is null and c.ends_as is null
        on conflict do nothing;
        if found then
            v_messages := v_messages || timers_set(clock_timestamp());
        end if;
    end if;
    if v_followed is not null then
        insert into untold (execution_id) select unnest(v_followed) on conflict do nothing;
        v_messages := v_messages || stage('execution.completed', v_followed, 100);
    end if;
    if v_failed is not null then
        v_messages := v_messages || raise_execution_events('penstock.execution.failed', v_failed);
    end if;
    return v_messages;
end $$;
