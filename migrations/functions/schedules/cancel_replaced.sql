-- Cancel the open runs of each schedule that has a waiting fire which replaces them (the policy `replace`). `canceling` are the
-- runs that a worker has, which the caller notifies. Such a run ends later, so the caller repeats the call until all of them have
-- ended. If a process crashes after the call, the next call of this function cancels the same runs again.
-- planner: lookups
create or replace function cancel_replaced(out messages message[], out canceling uuid[])
language plpgsql
as $$
begin
    select c.messages, c.canceling into messages, canceling
    from cancel_executions(array(
        select e.id
        from open_runs(array(select distinct w.schedule from startable_fires() w where w.replaces)) o
        join execution e on e.id = o.execution_id and e.status <> 'canceling' order by e.id),
        'replaced by a newer fire of its schedule') c;
end $$;
