-- Request the end of runs that a waiting fire replaces. `canceling` are those that a worker has. The caller repeats this
-- until the runs have ended, so a crash loses no request.
-- planner: lookups
create or replace function cancel_replaced(out messages message[], out canceling uuid[])
language plpgsql
as $$
begin
    select c.messages, c.canceling into messages, canceling
    from cancel_executions(array(
        select distinct e.id
        from waiting_fire w
        join schedule s on s.ref = w.schedule
        join execution e on e.id = s.last_execution
        where w.replaces and e.finished_at is null and e.status <> 'canceling' order by e.id),
        'replaced by a newer fire of its schedule') c;
end $$;
