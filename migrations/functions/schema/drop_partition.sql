-- Drop a daily partition if its day is over. Leave any other table alone. Only the owner of a table can drop it, and no service
-- is the owner, so the function has the owner's rights.
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
