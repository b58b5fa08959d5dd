-- Repair invariant I10f: list ended root executions in `finished` that are in none of its rows, so that they are archived.
create or replace function mend_finished(p_ids uuid[]) returns message[]
language plpgsql
as $$
begin
    insert into finished (ids)
    select array_agg(e.id) from execution e
    where e.id = any (p_ids) and e.parent is null and e.finished_at is not null
        and not exists (select from finished f where e.id = any (f.ids))
    having count(*) > 0;
    return '{}';
end $$;
