-- Nothing is due for these any more. Whoever is about to fire a timer of theirs waits for their rows, and is not waited for:
-- he fires it in vain.
create or replace function drop_timers(p_ids uuid[]) returns void
language plpgsql
as $$
begin
    delete from timer where ctid = any (array(
        select ctid from timer where execution_id = any (p_ids) for update skip locked));
end $$;
