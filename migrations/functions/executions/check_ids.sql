-- Raise PN002 if one of these ids comes from a clock that is more than an hour off this one. Such an execution would be the first
-- or the last of every list. The first 48 bits of an id are milliseconds (UUIDv7).
create or replace function check_ids(p_ids uuid[]) returns void
language plpgsql
as $$
declare
    v_now bigint := extract(epoch from clock_timestamp()) * 1000;
    v_from uuid := rpad(lpad(to_hex(v_now - 3600000), 12, '0'), 32, '0');
    v_to uuid := rpad(lpad(to_hex(v_now + 3600000), 12, '0'), 32, '0');
begin
    if cardinality(p_ids) = 1 and p_ids[1] between v_from and v_to then
        return; -- the usual case, without a query
    end if;
    if exists (select from unnest(p_ids) x where x not between v_from and v_to) then
        raise exception 'ids of a clock that is more than an hour off this one' using errcode = 'PN002';
    end if;
end $$;
