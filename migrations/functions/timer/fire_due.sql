-- Does what is due, one thing a transaction, since each locks rows first and keys after. Returns also, as `next:<seconds>`,
-- when there will be more to do; null seconds if nobody knows of anything. While somebody stands in line that is soon:
-- who cannot let the next one in leaves a note in `wake`.
create or replace function fire_due(p_limit integer) returns setof staged
language plpgsql
as $$
begin
    return query select * from fire_timers(p_limit);
    if not found then
        return query select * from wake_keys(p_limit);
    end if;
    if not found then
        return query select * from regroup(p_limit);
    end if;
    if not found then
        return query select * from expire_inquiries(p_limit);
    end if;
    return query select null::bigint, 'next:' || extract(epoch from least(
        (select min(due_at) from timer), (select min(at) from wake),
        (select min(due_at) from inquiry where status = 'created'),
        (select clock_timestamp() + interval '2 seconds' from lane limit 1)) - clock_timestamp()), '{}'::uuid[];
end $$;
