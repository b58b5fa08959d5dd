-- Drop a daily partition after its day is over; leave any other table alone. The function has the owner's rights, since only
-- the owner of a table can drop it, and no service is the owner.
create or replace function drop_partition(p_name text) returns void
language plpgsql security definer
as $$
begin
    if exists (
        select from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where c.oid = to_regclass(quote_ident(p_name)) and c.relname ~ '_[0-9]{8}$'
            and to_date(right(c.relname, 8), 'YYYYMMDD') < (now() at time zone 'utc')::date)
    then
        execute format('drop table if exists %I', p_name);
    end if;
end $$;
