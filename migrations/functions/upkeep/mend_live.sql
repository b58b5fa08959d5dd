-- Repair invariant I10b: delete rows of `live` with executions that have ended, wait in a lane, or do not exist.
create or replace function mend_live(p_ids uuid[]) returns message[]
language plpgsql
as $$
begin
    perform from execution where id = any (p_ids) order by id for no key update;
    delete from live l where l.execution_id = any (p_ids)
        and not exists (select from execution e
                        where e.id = l.execution_id and e.finished_at is null and e.status <> 'queued');
    return '{}';
end $$;
