-- Store in the row of `cluster` the statuses that enabled subscriptions ask for. Each move of an execution reads that row.
create or replace function subscribe_cluster() returns void
language sql
as $$
    update cluster set subscribed = coalesce(
        (select array_agg(distinct status) from subscription, unnest(statuses) as status where disabled_at is null), '{}')
$$;
