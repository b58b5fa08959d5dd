-- Nothing is due for these any more. A loop that is about to fire one of their timers has locked it and waits for the rows of
-- these executions, which the caller holds: to wait for it here would be a deadlock. It finds them ended, and does nothing.
create or replace function drop_timers(p_ids uuid[]) returns void
language plpgsql
as $$
begin
    delete from timer where ctid = any (array(
        select ctid from timer where execution_id = any (p_ids) for update skip locked));
end $$;
