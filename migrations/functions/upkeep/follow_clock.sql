-- Compare the clock of the database with the latest instant that an executor has noted. Return true if the clock went back by more
-- than a second. Then instants that processes wrote before are to come, and what waits for them would wait by so much longer. So
-- this function moves these instants by the difference:
-- - wake rows, without which an execution under a rate would wait for the next start under its key
-- - breakers, with the attempts that they count
-- - holds that are being released at a rate
-- - the next calls of poll triggers
-- - messages in the outbox, with their leases
-- - records of messages that may be lost: ends, events, and executions that were staged again (live)
-- - claims, from which the age of an attempt counts
-- - namespaces without a worker, and routes that are ordered
-- - calls to subscribers, and subscriptions that are failing
-- - batches of ended executions, which wait for the archive, and the next measurement of the figures
-- - what only other services write (follow_clock_elsewhere)
-- A row that another transaction has locked is left to that transaction.
-- The instants of executions are left alone: their delays, retries, deadlines and places in line are instants on the database's
-- clock. A row that was written since the clock went back may be moved, too. Then it is due early, and is looked at once more.
-- planner: indexes
create or replace function follow_clock() returns boolean
language plpgsql
as $$
declare
    v_now timestamptz := clock_timestamp();
    v_seen timestamptz;
    v_back interval;
begin
    select seen_at into v_seen from cluster;
    if v_seen between v_now - interval '10 seconds' and v_now + interval '1 second' then
        return false;
    end if;
    -- Another replica may compare at this moment.
    select seen_at into v_seen from cluster for no key update skip locked;
    if not found then
        return false;
    end if;
    v_now := clock_timestamp();
    update cluster set seen_at = v_now;
    if v_seen <= v_now + interval '1 second' then
        return false;
    end if;
    v_back := v_seen - v_now;

    update untold set since = least(since - v_back, v_now)
    where ctid = any (array(select ctid from untold where since > v_now for update skip locked));
    update unmatched set since = least(since - v_back, v_now)
    where ctid = any (array(select ctid from unmatched where since > v_now for update skip locked));
    update live set restaged_at = least(restaged_at - v_back, v_now)
    where ctid = any (array(select ctid from live where restaged_at > v_now for no key update skip locked));
    update claim set claimed_at = least(claimed_at - v_back, v_now)
    where ctid = any (array(select ctid from claim where claimed_at > v_now for no key update skip locked));
    update namespace set away_since = least(away_since - v_back, v_now)
    where ctid = any (array(select ctid from namespace where away_since > v_now for no key update skip locked));
    with late as (
        delete from ordered_route where since > v_now returning queue, since
    )
    insert into ordered_route (queue, since) select queue, min(least(since - v_back, v_now)) from late group by queue;
    update subscription set failing_since = least(failing_since - v_back, v_now)
    where ctid = any (array(select ctid from subscription where failing_since > v_now for no key update skip locked));
    update delivery set due_at = greatest(due_at - v_back, v_now)
    where ctid = any (array(select ctid from delivery where due_at > v_now for update skip locked));
    update finished set at = least(at - v_back, v_now)
    where ctid = any (array(select ctid from finished where at > v_now for update skip locked));
    update figures set due_at = v_now
    where ctid = any (array(select ctid from figures where due_at > v_now for update skip locked));
    perform follow_clock_elsewhere(v_now, v_back);

    -- The locks of keys come before the rows of breakers, as in a transaction that ends an attempt.
    perform lock_keys(array(
        select (limit_id, group_value)::limit_key from breaker where greatest(opened_at, probe_at, releasing_since) > v_now));
    update breaker
    set opened_at = opened_at - v_back, probe_at = probe_at - v_back, releasing_since = releasing_since - v_back
    where greatest(opened_at, probe_at, releasing_since) > v_now;
    update breaker_attempt set ended_at = ended_at - v_back where ended_at > v_now;
    update hold set releasing_since = releasing_since - v_back where releasing_since > v_now;
    update poll set next_due = next_due - v_back where next_due > v_now + make_interval(secs => every);
    with late as (
        delete from wake where at > v_now returning limit_id, group_value, namespace_id, at
    )
    insert into wake (limit_id, group_value, namespace_id, at)
    select distinct limit_id, group_value, namespace_id, greatest(at - v_back, v_now) from late;
    update outbox set due_at = greatest(due_at - v_back, v_now)
    where ctid = any (array(select ctid from outbox where due_at > v_now for update skip locked));
    return true;
end $$;
