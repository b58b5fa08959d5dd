-- Insert executions that are requested again into `live`, and schedule those that are due (schedule_due). Set a timer for each of
-- the others. An execution that is held is neither scheduled nor gets a timer.
-- planner: lookups
create or replace function request_again(p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    v_due uuid[];
    v_timed uuid[];
begin
    insert into live (execution_id) select unnest(p_ids) on conflict do nothing; -- an execution that leaves a lane is not in `live`
    with again as (
        select e.id, e.not_before, e.timed, e.not_before is null or e.not_before <= clock_timestamp() as due
        from execution e where e.id = any (p_ids)
    ), timed as (
        insert into timer (due_at, kind, execution_id)
        select not_before, 'ready', id from again where not due and not_before <> held_until()
    )
    select array_agg(id order by id) filter (where due), array_agg(id) filter (where timed) into v_due, v_timed from again;
    if v_timed is not null then
        perform set_clocks(v_timed);
    end if;
    return schedule_due(v_due);
end $$;
