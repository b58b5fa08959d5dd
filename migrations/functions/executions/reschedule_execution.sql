-- Set the instant at which an execution becomes ready, as long as no worker has begun its next attempt. Until then it is
-- requested: it leaves its lane or its route, and frees its slots. If the instant is past, the execution is ready now. If it has
-- not begun, the timer that bounds the whole execution moves with its start. The command is stored with its author and reason.
-- `outcome` is `moved`, or the reason why nothing was changed. `missing`, `ended` and `begun` are states of the execution. `held`
-- means that a hold or its paused workflow keeps it. `expires` means that it would expire before it started. `ready` means that
-- it is due already, and keeps its place. A worker may claim the execution, or the loop of the timers may fire its timer, at the
-- same time. The first to lock the row wins, and the other finds the status or the instant changed.
-- planner: lookups
create or replace function reschedule_execution(
    p_id uuid, p_at timestamptz, p_by text, p_reason text, out messages message[], out outcome text
)
language plpgsql
as $$
declare
    v_row execution%rowtype;
    v_now timestamptz;
    v_ready_at timestamptz;
begin
    messages := '{}';
    select * into v_row from execution where id = p_id for no key update;
    v_now := clock_timestamp();
    v_ready_at := greatest(p_at, v_now);
    outcome := case
        when v_row.id is null then 'missing'
        when v_row.finished_at is not null then 'ended'
        when v_row.status not in ('requested', 'queued', 'scheduled') then 'begun'
        when v_row.not_before = held_until() then 'held'
        when v_row.attempt = 0 and exists (
            select from timer where execution_id = p_id and kind = 'expires' and due_at <= v_ready_at) then 'expires'
        when p_at <= v_now and (v_row.not_before is null or v_row.not_before <= v_now) then 'ready'
        else 'moved'
    end;
    if outcome <> 'moved' then
        return;
    end if;
    -- This comes before the move. The check of places in line (I4r) expects it between two entries of the history.
    insert into workflow_command (execution_id, kind, by, reason, obeyed_at)
    values (p_id, 'reschedule', p_by, p_reason, clock_timestamp());
    update execution
    set status = 'requested', not_before = case when p_at > v_now then p_at end, ready_at = v_ready_at, since = null,
        reason = case when ends_as is null then coalesce(p_reason, 'it was rescheduled') else reason end
    where id = p_id;
    -- A timer that the loop is firing is locked, and is left alone. The loop finds the instant changed, and does nothing.
    delete from timer where ctid = any (array(
        select ctid from timer where execution_id = p_id and kind in ('ready', 'start', 'queued') for update skip locked));
    if v_row.attempt = 0 then
        update timer set due_at = due_at + (v_ready_at - v_row.ready_at) where ctid = any (array(
            select ctid from timer where execution_id = p_id and kind = 'total' for update skip locked));
    end if;
    messages := settle_moves(null, array[p_id], held_by(array[p_id])) || timers_set(v_ready_at);
end $$;
