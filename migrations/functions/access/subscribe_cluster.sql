-- Keep the statuses that subscriptions name in the row where every move looks for them.
create or replace function subscribe_cluster() returns void
language sql
as $$
    update cluster set subscribed = coalesce(
        (select array_agg(distinct status) from subscription, unnest(statuses) as status where disabled_at is null), '{}')
$$;
