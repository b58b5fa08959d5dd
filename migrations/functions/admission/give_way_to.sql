-- Make older executions give way (give_way) to newly admitted ones, under limits with `when_full: cancel_running`. Executions
-- that hold no slot now give way as well. The caller holds the locks of all keys.
-- planner: lookups
create or replace function give_way_to(p_candidates candidate[]) returns void
language plpgsql
as $$
declare
    r record;
begin
    for r in
        select k.limit_id, k.group_value, l.max from unnest(p_candidates) c cross join unnest(c.keys) k
        join concurrency_limit l on l.id = k.limit_id and l.when_full = 'cancel_running'
        where c.attempt = 0 group by k.limit_id, k.group_value, l.max order by k.limit_id, k.group_value
    loop
        perform give_way((r.limit_id, r.group_value)::limit_key, r.max);
    end loop;
end $$;
