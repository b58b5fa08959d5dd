-- Schedule executions that a submit has just stored as requested. The submit stored them so because there were too many, or
-- because it did not get the locks of their keys within 50 ms. This call waits up to 2 s for each lock, so that the executions
-- are in line when the client's call returns. If a lock is held even longer, nothing is done. The message that the submit staged
-- then lets an executor schedule them.
-- planner: lookups_planned_once
create or replace function schedule_submitted(p_ids uuid[]) returns message[]
language plpgsql security definer
set lock_timeout = '2s'
as $$
begin
    -- The session may have set `penstock.moves`. The triggers would believe it, since this function has the owner's rights.
    perform set_config('penstock.moves', '', true);
    return schedule_executions(p_ids);
exception when lock_not_available then
    return '{}';
end $$;
