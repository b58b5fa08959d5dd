-- Notify workers of what this transaction has assigned to them on a queue, once it commits: the claim, the time in seconds, and
-- each attempt as in the type claimed_attempt. If that is longer than a notification can be, it names the claim alone.
-- PostgreSQL commits transactions that notify one after another. So that they do not wait for each other's disks, only one notifies
-- in its transaction at a time. The others return messages, which their process sends after the commit: the worker then looks for
-- its claims.
create or replace function notify_workers(p_assigned assignment[], p_queue text) returns message[]
language plpgsql
as $$
begin
    if not pg_try_advisory_xact_lock(7, -5) then
        return array(select (0, 'assigned.' || a.worker, '{}')::message from unnest(p_assigned) a);
    end if;
    perform pg_notify(a.channel, case when octet_length(t.text) < 7900 then t.text else json_build_object('claim', a.claim)::text end)
    from unnest(p_assigned) a cross join lateral (
        select json_build_object('claim', a.claim, 'queue', p_queue, 'claimed', a.attempts,
            'at', extract(epoch from clock_timestamp()))::text) t (text);
    return '{}';
end $$;
