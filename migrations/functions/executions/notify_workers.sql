-- Notify workers, at the commit, of the executions that this transaction has assigned to them on a queue. The notification has
-- the claim, the instant in seconds, and each attempt as in the type claimed_attempt. If that is too long, the notification has
-- only the claim.
-- PostgreSQL commits transactions that notify one after another. So that few of them wait for each other's disks, at most three
-- at a time notify inside their transactions. The others return messages, which their process sends after the commit. A worker
-- that receives such a message looks for its claims.
create or replace function notify_workers(p_assigned assignment[], p_queue text) returns message[]
language plpgsql
as $$
begin
    if not (pg_try_advisory_xact_lock(7, -5) or pg_try_advisory_xact_lock(7, -6) or pg_try_advisory_xact_lock(7, -7)) then
        return array(select (0, 'assigned.' || a.worker, '{}')::message from unnest(p_assigned) a);
    end if;
    perform pg_notify(a.channel, case when octet_length(t.text) < 7900 then t.text else json_build_object('claim', a.claim)::text end)
    from unnest(p_assigned) a cross join lateral (
        select json_build_object('claim', a.claim, 'queue', p_queue, 'claimed', a.attempts,
            'at', extract(epoch from clock_timestamp()))::text) t (text);
    return '{}';
end $$;
