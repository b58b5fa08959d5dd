-- Locks what is about to end: states of workflows, then rows of executions. An advance that ends its workflow locks in the
-- same order; the other way round, the two transactions would wait for each other.
create or replace function lock_runs(p_ids uuid[]) returns void
language plpgsql
as $$
begin
    perform make_workflows(p_ids); -- what is asked of one that has not begun is noted there too
    perform from workflow where execution_id = any (p_ids) order by execution_id for no key update;
    perform from execution where id = any (p_ids) and finished_at is null order by id for no key update;
end $$;
