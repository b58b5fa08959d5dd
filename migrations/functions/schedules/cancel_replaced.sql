-- Request the end of runs that a waiting fire replaces. `canceling` are the runs that a worker has. The caller repeats this until
-- the runs have ended, so a crash loses no request.
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
