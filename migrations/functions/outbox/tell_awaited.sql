-- Return messages for the processes that wait for the ends of these executions. The messages are not in the outbox: the caller
-- sends them after its commit. A process that receives no message polls the end a little later. The function deletes no rows of
-- `awaited`, since each process deletes its own, in its own order.
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
