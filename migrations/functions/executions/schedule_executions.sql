-- Schedule requested executions, and stage their messages: requested -> started, or queued if a limit is full (I1, I3). A
-- workflow runs at once, and a waiting task begins to wait. Tasks of a paused workflow stay requested, and so do executions that
-- a hold covers. Rows are locked in the order of ids: first those of executions without a limit, then those of the others.
-- planner: lookups_planned_once
create or replace function schedule_executions(p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    v_messages message[] := '{}';
    v_started integer := 0;
begin
    if exists (select from paused_workflow) or exists (select from hold) then
        p_ids := hold_requested(p_ids);
    end if;
    -- Most batches are of one kind. If the first execution is under limits, check whether all others are, too.
    if not exists (select from execution e join namespace n on n.id = e.namespace_id
                   where e.id = p_ids[1] and n.limits <> '{}')
        or exists (select from execution e join namespace n on n.id = e.namespace_id
                   where e.id = any (p_ids) and n.limits = '{}') then
        select messages, started into v_messages, v_started from start_executions(p_ids);
    end if;
    if v_started < cardinality(p_ids) then
        v_messages := v_messages || request_slots(p_ids);
    end if;
    return v_messages;
end $$;
