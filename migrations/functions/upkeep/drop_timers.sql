-- Delete the timers of these executions. A locked timer stays. A loop that is about to fire it has locked the row, and waits
-- for the rows of these executions, which the caller holds: to wait for the timer here would be a deadlock. The loop then
-- finds the executions ended, and does nothing.
create or replace function drop_timers(p_ids uuid[]) returns void
language plpgsql
as $$
begin
    delete from timer where ctid = any (array(
        select ctid from timer where execution_id = any (p_ids) for update skip locked));
end $$;
