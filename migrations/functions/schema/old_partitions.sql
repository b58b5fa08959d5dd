-- Return the names of the daily partitions of `p_parent` that ended more than `p_keep` ago, oldest first.
create or replace function old_partitions(p_parent text, p_keep interval) returns setof text
language sql stable
as $$
    select c.relname::text from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = p_parent::regclass and c.relname ~ '_[0-9]{8}$'
        and to_date(right(c.relname, 8), 'YYYYMMDD') + 1 < (now() - p_keep) at time zone 'utc'
    order by 1
$$;
