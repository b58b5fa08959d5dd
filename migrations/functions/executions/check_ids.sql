-- Refuses ids that were made by a clock which is more than an hour off this one: they would lead every list, or end it, for as
-- long as they are kept. Their first 48 bits are milliseconds (UUIDv7).
create or replace function check_ids(p_ids uuid[]) returns void
language plpgsql
as $$
declare
    v_now bigint := extract(epoch from clock_timestamp()) * 1000;
    v_from uuid := rpad(lpad(to_hex(v_now - 3600000), 12, '0'), 32, '0');
    v_to uuid := rpad(lpad(to_hex(v_now + 3600000), 12, '0'), 32, '0');
begin
    if exists (select from unnest(p_ids) x where x not between v_from and v_to) then
        raise exception 'ids of a clock that is more than an hour off this one' using errcode = 'PN002';
    end if;
end $$;
