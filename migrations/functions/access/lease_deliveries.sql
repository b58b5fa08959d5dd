-- Lease at most `p_most` due calls for `p_seconds`, and count a try of each. At most `p_each` of them are for the same
-- subscription, so that no call waits behind a subscriber that does not answer. A failing subscription gets one call at a
-- time.
-- planner: lookups
create or replace function lease_deliveries(p_each integer, p_most integer, p_seconds double precision)
returns table (id uuid, subscription text, url text, body text, tries integer, now timestamptz)
language sql
as $$
    with due as (
        select d.id, s.name, s.url from subscription s
        cross join lateral (
            select id from delivery where subscription = s.name and due_at <= clock_timestamp()
            order by due_at limit case when s.failing_since is null then p_each else 1 end
            for update skip locked
        ) d
        where s.disabled_at is null limit p_most
    )
    update delivery d set tries = d.tries + 1, due_at = clock_timestamp() + make_interval(secs => p_seconds)
    from due where d.id = due.id
    returning d.id, due.name, due.url, d.body, d.tries, clock_timestamp()
$$;
