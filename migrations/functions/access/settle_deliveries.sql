-- Record the results of calls to subscribers. Delete an answered call, which has a null in `p_errors`. Retry a failed call after
-- its seconds in `p_delays`, or drop it if the delay is null. Disable a subscription, and delete its calls, if no call has been
-- delivered for `p_patience` seconds. Also disable it if the subscriber has answered that it is gone (`p_gone`). Return the names
-- of the disabled subscriptions, or null if there are none.
-- planner: lookups
create or replace function settle_deliveries(
    p_ids uuid[], p_subscriptions text[], p_errors text[], p_delays double precision[], p_gone boolean[],
    p_patience double precision) returns text[]
language plpgsql
as $$
declare
    v_disabled text[];
begin
    -- The rows are locked in the order of names, so two replicas that settle calls of the same subscriptions do not deadlock.
    perform from subscription where name = any (p_subscriptions) order by name for update;
    delete from delivery where id in (
        select id from unnest(p_ids, p_errors, p_delays) as u (id, error, delay) where error is null or delay is null);
    update delivery d set due_at = clock_timestamp() + make_interval(secs => u.delay)
    from unnest(p_ids, p_delays) as u (id, delay) where d.id = u.id;
    with told as (
        select subscription, bool_or(error is null) as reached, bool_or(gone) as gone, max(error) as error,
            count(*) filter (where error is not null and delay is null) as dropped
        from unnest(p_subscriptions, p_errors, p_delays, p_gone) as u (subscription, error, delay, gone)
        group by subscription
    ), noted as (
        update subscription s set dropped = s.dropped + told.dropped,
            delivered_at = case when reached then clock_timestamp() else s.delivered_at end,
            failing_since = case when not reached then coalesce(s.failing_since, clock_timestamp()) end,
            error = case when reached then null else told.error end,
            disabled_at = case when gone or not reached
                and s.failing_since < clock_timestamp() - make_interval(secs => p_patience) then clock_timestamp() end,
            disabled_because = case when gone then 'its URL answered 410 Gone'
                when not reached and s.failing_since < clock_timestamp() - make_interval(secs => p_patience)
                then 'its requests failed for too long: ' || told.error end
        from told where s.name = told.subscription and s.disabled_at is null
        returning s.name, s.disabled_at
    )
    select array_agg(name) filter (where disabled_at is not null) into v_disabled from noted;
    delete from delivery where subscription = any (v_disabled);
    if v_disabled is not null then
        perform subscribe_cluster();
    end if;
    return v_disabled;
end $$;
