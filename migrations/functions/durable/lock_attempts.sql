-- Lock the executions among `p_ids` that this worker runs, so that no transaction takes these attempts away before this one ends.
-- The locks are shared, so they wait only for transactions that move the executions.
-- planner: lookups_planned_once
create or replace function lock_attempts(p_worker uuid, p_ids uuid[]) returns void
language plpgsql
as $$
begin
    perform from execution where id = any (p_ids) and claim = p_worker and status in ('running', 'canceling') order by id for share;
end $$;
