-- Asks the runs to end that a waiting fire replaces. Repeated until they have ended, so no crash forgets it.
-- planner: lookups_of_fires
create or replace function cancel_replaced() returns setof staged
language plpgsql
as $$
declare
    v_ids uuid[];
begin
    select array_agg(distinct e.id order by e.id) into v_ids
    from waiting_fire w
    join schedule s on s.ref = w.schedule
    join execution e on e.id = s.last_execution
    where w.replaces and e.finished_at is null and e.status <> 'canceling';
    if v_ids is not null then
        return query select * from cancel_executions(v_ids, 'replaced by a newer fire of its schedule');
    end if;
end $$;
