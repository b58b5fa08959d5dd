-- Lease at most `p_most` due calls to subscribers for `p_seconds`, and count a try of each. Lease at most `p_each` calls of one
-- subscription, and none of the subscriptions `p_busy`, to which earlier calls are under way. So no call waits behind a
-- subscriber that does not answer. A subscription that is failing gets one call, after those of the healthy subscriptions.
-- planner: lookups
create or replace function lease_calls(p_busy text[], p_each integer, p_most integer, p_seconds double precision)
returns table (id uuid, subscription text, url text, body text, tries integer, now timestamptz)
language sql
as $$
    with due as (
        select d.id, s.name, s.url from (
            select name, url, failing_since from subscription
            where disabled_at is null and name <> all (p_busy)
            order by failing_since is not null, random()
        ) s
        cross join lateral (
            select id from delivery where subscription = s.name and due_at <= clock_timestamp()
            order by due_at limit case when s.failing_since is null then p_each else 1 end
            for update skip locked
        ) d
        limit p_most
    )
    update delivery d set tries = d.tries + 1, due_at = clock_timestamp() + make_interval(secs => p_seconds)
    from due where d.id = due.id
    returning d.id, due.name, due.url, d.body, d.tries, clock_timestamp()
$$;
