-- Lock executions that are about to end: first the states of workflows, then the rows of executions. An advance that ends its
-- workflow locks in the same order; in the other order, the two transactions would deadlock.
create or replace function lock_runs(p_ids uuid[]) returns void
language plpgsql
as $$
begin
    perform make_workflows(p_ids); -- a workflow that has not begun needs its row, too: a stop is recorded there
    perform from workflow where execution_id = any (p_ids) order by execution_id for no key update;
    perform from execution where id = any (p_ids) and finished_at is null order by id for no key update;
end $$;
