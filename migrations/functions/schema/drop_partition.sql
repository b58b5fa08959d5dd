-- Drop a daily partition after its day is over, unless stored work still needs its rows (partition_needs). Leave any other table
-- alone. A drop needs the lock of the whole table, and every later statement on the table waits behind it. So the function gives up
-- after 50 ms without that lock, and the caller tries again later. The function has the owner's rights, since only the owner of a
-- table can drop it, and no service is the owner.
create or replace function drop_partition(p_name text) returns void
language plpgsql security definer
set lock_timeout = '50ms'
as $$
begin
    if exists (
        select from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where c.oid = to_regclass(quote_ident(p_name)) and c.relname ~ '_[0-9]{8}$'
            and to_date(right(c.relname, 8), 'YYYYMMDD') < (now() at time zone 'utc')::date)
        and not exists (select from partition_needs(p_name))
    then
        execute format('drop table if exists %I', p_name);
    end if;
end $$;
