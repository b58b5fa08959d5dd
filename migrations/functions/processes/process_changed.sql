-- Update the namespaces when a worker comes or goes: note which have no live worker (notice_workers), and clear the mark
-- `lacked`, since the workers that lacked an action may have left. A claim sets the mark again. A namespace that another
-- transaction has locked is being marked at this moment, and keeps its mark.
create or replace function process_changed() returns trigger
language plpgsql
as $$
begin
    perform notice_workers();
    update namespace set lacked = false
    where id in (select id from namespace where lacked for no key update skip locked);
    return null;
end $$;

create or replace trigger process_changed after insert or delete or update of state on process
for each statement execute function process_changed();
