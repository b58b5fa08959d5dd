-- Return the names of the daily partitions of `p_parent` that ended more than `p_keep` ago, oldest first. Fires are partitioned by the
-- day on which they were due, and kept by the instant at which they were made. So a day of fires is not old while it has a fire that a
-- backfill or an executor after an outage has made within `p_keep`. Without that fire, another backfill would start it again.
create or replace function old_partitions(p_parent text, p_keep interval) returns setof text
language plpgsql stable
as $$
declare
    v_name text;
    v_recent boolean := false;
begin
    for v_name in
        select c.relname::text from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = p_parent::regclass and c.relname ~ '_[0-9]{8}$'
            and to_date(right(c.relname, 8), 'YYYYMMDD') + 1 < (now() - p_keep) at time zone 'utc'
        order by 1
    loop
        if p_parent = 'fire' then
            begin
                execute format('select exists (select from %I where made_at >= now() - $1)', v_name) into v_recent using p_keep;
            exception when undefined_table then -- another replica has dropped it meanwhile
                continue;
            end;
        end if;
        if not v_recent then
            return next v_name;
        end if;
    end loop;
end $$;
