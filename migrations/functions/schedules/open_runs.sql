-- Return the open runs of these schedules: executions of their fires that have not ended. Several can be open, after a time under
-- the policy `allow` or after a run by hand. The overlap policies wait for all of them.
create or replace function open_runs(p_schedules text[]) returns table (schedule text, execution_id uuid)
language sql stable
as $$
    select o.schedule, o.execution_id from open_fire o
    join execution e on e.id = o.execution_id and e.finished_at is null
    where o.schedule = any (p_schedules)
    union
    select s.ref, e.id from schedule s join execution e on e.id = s.last_execution and e.finished_at is null
    where s.ref = any (p_schedules)
$$;
