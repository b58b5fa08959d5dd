-- Workers come and go: processes that wait for one are told of it, and which actions some of a route lack is found out anew. (A
-- namespace that somebody else holds is just being noted as one of these.)
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
