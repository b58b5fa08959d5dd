-- Raise PN001 if a service's role inserts an execution that has ended, or in a status in which no execution begins. Otherwise the
-- history would contain moves that never happened. Only the owner may insert such an execution. The trigger recognizes the owner
-- by the right to truncate the table, which no service has. The function has the rights of the role that inserts.
create or replace function execution_begun() returns trigger
language plpgsql
as $$
begin
    if exists (select from new_rows where finished_at is not null or status not in ('requested', 'scheduled', 'waiting', 'running'))
    then
        raise exception 'an execution begins as requested, scheduled, waiting or running, and not ended' using errcode = 'PN001';
    end if;
    return null;
end $$;

create or replace trigger execution_begun after insert on execution
referencing new table as new_rows
for each statement when (not has_table_privilege('execution'::regclass, 'truncate')) execute function execution_begun();
