-- Messages for those who wait for the ends of these executions. They are not staged: whoever began the transaction sends them
-- after its commit, and who is not told finds the end by himself a little later. Rows of those who wait are only read here:
-- they delete them, in an order of their own.
-- planner: lookups_planned_once
create or replace function tell_awaited(p_ids uuid[]) returns message[]
language plpgsql
as $$
begin
    return coalesce((
        select array_agg((0, x.queue, x.ids)::message)
        from (select 'awaited.' || a.watcher as queue, array_agg(a.execution_id) as ids
              from awaited a where a.execution_id = any (p_ids) group by a.watcher) x), '{}');
end $$;
