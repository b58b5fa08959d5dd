-- The history of an execution begins with its row.
create or replace function execution_inserted() returns trigger
language plpgsql
as $$
begin
    insert into history (execution_id, at, old, new, attempt, actor, reason, ready_at)
    select id, clock_timestamp(), null, status, attempt, current_setting('application_name'), reason, ready_at from new_rows;
    if exists (select from cluster where announced <> '{}') then
        perform announce_moves(array_agg(id), array_agg(status)) from new_rows;
    end if;
    if exists (select from cluster where subscribed <> '{}') then
        insert into subscribed_move (execution_id, status, attempt, namespace_id, parent, reason)
        select id, status, attempt, namespace_id, parent, reason from new_rows
        where status = any (array(select unnest(subscribed) from cluster));
    end if;
    return null;
end $$;

create or replace trigger execution_inserted after insert on execution
referencing new table as new_rows
for each statement execute function execution_inserted();
