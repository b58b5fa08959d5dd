-- Notice namespaces without workers (notice_workers) when workers come and go, and forget which actions some workers of a
-- route lack (`lacked`): that is found again. A namespace that another transaction has locked is just being marked, and is
-- left out.
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
