-- Locks those of these executions that this worker runs, so that their attempts are not taken away before the transaction ends.
-- Shared: it waits only for what moves them.
-- planner: lookups_planned_once
create or replace function lock_attempts(p_worker uuid, p_ids uuid[]) returns void
language plpgsql
as $$
begin
    perform from execution where id = any (p_ids) and claim = p_worker and status in ('running', 'canceling') order by id for share;
end $$;
