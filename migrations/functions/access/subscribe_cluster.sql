-- Write the statuses that enabled subscriptions name to the row of `cluster`, which every move reads.
create or replace function subscribe_cluster() returns void
language sql
as $$
    update cluster set subscribed = coalesce(
        (select array_agg(distinct status) from subscription, unnest(statuses) as status where disabled_at is null), '{}')
$$;
