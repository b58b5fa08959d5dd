-- Lock executions that are about to end: first the rows of workflows, then the rows of executions. A transaction that advances a
-- workflow to its end locks in the same order, so the two do not deadlock.
create or replace function lock_runs(p_ids uuid[]) returns void
language plpgsql
as $$
begin
    perform make_workflows(p_ids); -- a stop is recorded in this row, so a workflow that has not begun needs it, too
    perform from workflow where execution_id = any (p_ids) order by execution_id for no key update;
    perform from execution where id = any (p_ids) and finished_at is null order by id for no key update;
end $$;
