-- End executions that no worker reports on: cancelled, timed out, refused, dead-lettered, abandoned. Only executions in one
-- of the statuses `p_from` are ended, since a worker may claim or finish one meanwhile. An attempt that waited for something outside
-- gets the outcome of a failure or timeout, and counts for the breakers of its keys. `moved` are the executions that this
-- call ended.
-- planner: lookups
create or replace function end_executions(
    p_ids uuid[], p_from text[], p_to text, p_reason text, p_error text, out messages message[], out moved uuid[]
)
language plpgsql
as $$
declare
    v_ended ended[];
    v_limited uuid[];
    v_outside uuid[];
begin
    with changed as (
        update execution e
        set status = p_to, reason = coalesce(p_reason, e.reason), finished_at = clock_timestamp()
        where e.id = any (p_ids) and e.status = any (p_from)
        returning e.id, e.parent, e.attempt, e.claim, e.keys
    ), tried as (
        insert into attempt (execution_id, attempt, outcome, worker, error)
        select id, attempt, p_to, current_setting('application_name'), p_error::jsonb from changed where claim is not null
        on conflict do nothing
    )
    -- `followed` is true: the workflows and callbacks that follow these executions are notified.
    select coalesce(array_agg(id), '{}'), array_agg(id) filter (where keys is not null),
        array_agg((id, parent, p_to, claim is not null, true, null,
            coalesce(p_error::jsonb, jsonb_build_object('type', p_to, 'message', p_reason)))::ended)
    into moved, v_limited, v_ended from changed;
    messages := '{}';
    if p_to in ('failed', 'timeout') and 'waiting' = any (p_from) then
        with settled as (
            update attempt a
            set outcome = p_to, error = coalesce(p_error::jsonb, jsonb_build_object('type', p_to, 'message', p_reason))
            from execution e join outside_wait w on w.execution_id = e.id and w.attempt = e.attempt
            where e.id = any (moved) and a.execution_id = e.id and a.attempt = e.attempt and a.outcome = 'waiting'
            returning e.id
        )
        select array_agg(id) into v_outside from settled where id = any (v_limited);
        if v_outside is not null then
            perform lock_keys(keys_around(array(
                select distinct k from execution e cross join unnest(e.keys) k where e.id = any (v_limited))));
            messages := count_outside(v_outside);
        end if;
    end if;
    messages := messages || settle_moves(v_ended, null, held_by(v_limited));
end $$;
