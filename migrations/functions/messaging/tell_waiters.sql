-- What tells processes that ends which they wait for are there: hints, in no outbox, for whoever commits to send once it has.
-- (A NOTIFY in this transaction would make all that tell somebody commit one after the other.)
-- planner: lookups_planned_once
create or replace function tell_waiters(p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    v_hints message[];
begin
    with gone as (
        delete from awaited where execution_id = any (p_ids) returning execution_id, channel
    )
    select coalesce(array_agg((null, g.channel, g.ids)::message), '{}') into v_hints
    from (select channel, array_agg(execution_id) as ids from gone group by channel) g;
    return v_hints;
end $$;
