-- Store the statuses of all enabled subscriptions in the row of `cluster`. Every move reads that row.
create or replace function subscribe_cluster() returns void
language sql
as $$
    update cluster set subscribed = coalesce(
        (select array_agg(distinct status) from subscription, unnest(statuses) as status where disabled_at is null), '{}')
$$;
