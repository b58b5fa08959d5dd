-- Update the namespaces when a worker comes, leaves or changes its state. Record which have no active worker (notice_workers).
-- Clear the mark `lacked`, since the workers that lacked an action may have left. A claim sets the mark again. A namespace that
-- another transaction has locked keeps its mark, since that transaction may be setting it.
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
