-- Make the daily (UTC) partitions of `p_parent`, for today and `p_ahead` more days. Return the number of new partitions.
-- - A new table is made apart and then attached, so that sessions read and write the other partitions meanwhile. Only statements
--   that read all days wait, for the lock of the default partition.
-- - The function gives up after 50 ms without that lock, so that no session waits longer behind it. The caller tries again later.
-- - A transaction makes the partitions of one table. With the locks of two tables, it could deadlock with a transaction that uses
--   both.
-- - If no process made partitions for a week, the default partition holds rows of the new days. These rows move to the new
--   partition, which could not be attached otherwise.
-- - Bounds are written as ISO dates with their offset. Under another DateStyle of the session, PostgreSQL could read another
--   instant.
-- The function has the owner's rights, since a table of another role cannot be a partition.
create or replace function make_table_partitions(p_parent text, p_ahead integer) returns integer
language plpgsql security definer
set lock_timeout = '50ms'
as $$
declare
    v_day date;
    v_name text;
    v_made integer := 0;
begin
    if not exists (
        select from pg_partitioned_table p where p.partrelid = to_regclass(quote_ident(p_parent))) then
        raise exception '% has no daily partitions', p_parent;
    end if;
    if to_regclass(p_parent || '_default') is null then
        execute format('create table %I partition of %I default', p_parent || '_default', p_parent);
        perform copy_rights(p_parent, p_parent || '_default');
    end if;
    for v_day in select (now() at time zone 'utc')::date + n from generate_series(0, p_ahead) n loop
        v_name := p_parent || to_char(v_day, '_YYYYMMDD');
        if to_regclass(v_name) is null then
            if v_day = (now() at time zone 'utc')::date then
                -- Rows of today come now. An insert that has chosen the default partition, and waits for its lock, would fail after
                -- the attachment. Without the lock of the table it has not chosen yet.
                execute format('lock table %I in access exclusive mode', p_parent);
            end if;
            perform split_default_partition(p_parent, v_name, to_char(v_day, 'YYYY-MM-DD') || ' 00:00:00+00',
                to_char(v_day + 1, 'YYYY-MM-DD') || ' 00:00:00+00');
            perform copy_rights(p_parent, v_name);
            v_made := v_made + 1;
        end if;
    end loop;
    return v_made;
end $$;
