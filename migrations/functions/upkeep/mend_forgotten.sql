-- Repair invariant I10a: insert open executions into `live`, where recovery looks for them, unless they wait in a lane. Also
-- repair the lanes of queued executions (mend_lines).
create or replace function mend_forgotten(p_ids uuid[]) returns message[]
language plpgsql
as $$
begin
    perform from execution where id = any (p_ids) order by id for no key update;
    insert into live (execution_id)
    select e.id from execution e
    where e.id = any (p_ids) and e.finished_at is null
        and not exists (select from waiter w where w.execution_id = e.id)
    on conflict do nothing;
    return mend_lines(array(
        select e.id from execution e where e.id = any (p_ids) and e.status = 'queued'));
end $$;
