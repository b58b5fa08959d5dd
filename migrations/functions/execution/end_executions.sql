-- Ends executions that no worker reports on: cancelled, timed out, refused, dead-lettered, abandoned. Acts only on
-- those in one of the statuses p_from, and frees slots, wakes waiters and workflows in the same transaction.
-- Returns what it staged and, as `moved`, the ids that it really moved.
-- planner: lookups
create or replace function end_executions(p_ids uuid[], p_from text[], p_to text, p_reason text, p_error text)
returns setof staged
language plpgsql
as $$
declare
    v_moved uuid[];
    v_roots uuid[];
begin
    with moved as (
        update execution e
        set status = p_to, reason = coalesce(p_reason, e.reason), finished_at = clock_timestamp()
        where e.id = any (p_ids) and e.status = any (p_from)
        returning e.id, e.parent, e.attempt, e.claim
    ), told as (
        insert into result (execution_id, error)
        select id, coalesce(p_error::jsonb, jsonb_build_object('type', p_to, 'message', p_reason)) from moved
    ), tried as (
        insert into attempt (execution_id, attempt, outcome, worker, error)
        select id, attempt, p_to, current_setting('application_name'), p_error::jsonb from moved where claim is not null
        on conflict do nothing
    )
    select array_agg(id), array_agg(id) filter (where parent is null) into v_moved, v_roots from moved;
    if v_moved is null then
        return;
    end if;
    return query select null::bigint, 'moved', v_moved;

    update inquiry set status = case when p_to = 'timeout' then 'timeout' else 'cancelled' end,
        answered_at = clock_timestamp()
    where execution_id = any (v_moved) and status = 'created';
    delete from event_wait where execution_id = any (v_moved);
    -- Whoever follows an execution that ended this way is told too: callbacks as well as workflows.
    return query select * from close_executions(v_moved, v_roots, v_moved);
end $$;
