-- End executions that no worker reports on: they were cancelled, refused or dead-lettered, timed out, or were abandoned. Only
-- executions in one of the statuses `p_from` are ended, since a worker may claim or finish one at the same time. An execution
-- with a claim also gets the outcome of its attempt. A durable function with a requested end gets that end, and keeps the reason
-- of the request. `moved` are the executions that this call of the function ended.
-- planner: lookups
create or replace function end_executions(
    p_ids uuid[], p_from text[], p_to text, p_reason text, p_error text, out messages message[], out moved uuid[]
)
language plpgsql
as $$
declare
    v_ended ended[];
    v_limited uuid[];
begin
    with changed as (
        update execution e
        set status = coalesce(e.ends_as, p_to), finished_at = clock_timestamp(),
            reason = case when e.ends_as is null then coalesce(p_reason, e.reason) else coalesce(e.reason, p_reason) end
        where e.id = any (p_ids) and e.status = any (p_from)
        returning e.id, e.status, e.parent, e.attempt, e.claim, e.keys,
            coalesce(case when e.ends_as is null then p_error::jsonb end,
                     jsonb_build_object('type', e.status, 'message', e.reason)) as error
    ), tried as (
        insert into attempt (execution_id, attempt, outcome, worker, error)
        select id, attempt, status, current_setting('application_name'), p_error::jsonb from changed where claim is not null
        on conflict do nothing
    )
    -- `followed` is true, so that the workflows and callbacks that follow these executions are notified.
    select coalesce(array_agg(id), '{}'), array_agg(id) filter (where keys is not null),
        array_agg((id, parent, status, claim is not null, true, null, error)::ended)
    into moved, v_limited, v_ended from changed;
    messages := settle_moves(v_ended, null, held_by(v_limited));
end $$;
