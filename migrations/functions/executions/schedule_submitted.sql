-- Schedule executions that a submit has just stored as requested, because it did not get the locks of their keys within 50 ms or had
-- too many of them. It waits longer, so that they stand in line when the client's call returns. If a lock is held even longer,
-- nothing is done: the message that the submit has staged lets an executor do it.
-- planner: lookups_planned_once
create or replace function schedule_submitted(p_ids uuid[]) returns message[]
language plpgsql security definer
set lock_timeout = '2s'
as $$
begin
    -- The session may have set it, and the triggers would believe it, since this function has the owner's rights.
    perform set_config('penstock.moves', '', true);
    return schedule_executions(p_ids);
exception when lock_not_available then
    return '{}';
end $$;
