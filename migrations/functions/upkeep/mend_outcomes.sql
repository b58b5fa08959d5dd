-- Repair invariant I10c: write the error `ResultLost` as the outcome of ended executions that have none, so that no client waits
-- for ever. A completed execution with a result is left alone.
create or replace function mend_outcomes(p_ids uuid[]) returns message[]
language plpgsql
as $$
begin
    insert into result (execution_id, error)
    select e.id, jsonb_build_object('type', 'ResultLost', 'message', 'its outcome was lost (penstock repair)')
    from execution e where e.id = any (p_ids) and e.finished_at is not null
    on conflict (execution_id) do update set error = coalesce(result.error, excluded.error)
    where not exists (select from execution e where e.id = excluded.execution_id and e.status = 'completed');
    return '{}';
end $$;
