-- Write a wake row for each of the keys `p_keys` at whose gate a lane waits, unless the key has a due one. Call it for keys that
-- are not promoted now, because lanes wait for their regrouping (regrouping_limits). The wake row counts as due only when all of
-- them are regrouped. The caller holds the locks of the keys.
-- planner: lookups
create or replace function store_wakes(p_keys limit_key[]) returns void
language sql
as $$
    insert into wake (limit_id, group_value)
    select distinct k.limit_id, k.group_value from unnest(p_keys) k
    where exists (select from lane l where l.gate_limit = k.limit_id and l.gate_group = k.group_value)
        and not exists (
            select from wake w
            where w.limit_id = k.limit_id and w.group_value = k.group_value and w.at <= clock_timestamp())
$$;
