-- Workers come and go: processes that wait for one are told of it.
create or replace function process_changed() returns trigger
language plpgsql
as $$
begin
    perform notice_workers();
    return null;
end $$;

create or replace trigger process_changed after insert or delete or update of state on process
for each statement execute function process_changed();
