-- List executions that are `requested` again in `live`, and schedule those that are due (schedule_due). A timer
-- schedules the others later. An execution that is held with its paused workflow gets neither, until the workflow is resumed.
-- planner: lookups
create or replace function request_again(p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    v_due uuid[];
    v_timed uuid[];
begin
    insert into live (execution_id) select unnest(p_ids) on conflict do nothing; -- an execution that stood in line is not listed there
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
