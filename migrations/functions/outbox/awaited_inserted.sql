-- Delete new rows of a client's role that name executions which the role did not start. Otherwise the process that ends such an
-- execution would send its result to that client. A submit inserts these rows in the statement that creates the executions, and
-- the trigger runs at its end. All other roles may read results, so the trigger does nothing for them.
create or replace function awaited_inserted() returns trigger
language plpgsql security definer
as $$
declare
    v_ids uuid[] := array(select execution_id from new_rows);
begin
    delete from awaited a using new_rows n
    where a.execution_id = n.execution_id and a.watcher = n.watcher and n.execution_id <> all (own_executions(v_ids));
    return null;
end $$;

create or replace trigger awaited_inserted after insert on awaited
referencing new table as new_rows
for each statement when (not has_table_privilege('execution'::regclass, 'select')) execute function awaited_inserted();
