-- Notify workers, at the commit, of the executions that this transaction has assigned to them on a queue. The notification has
-- the claim, the instant in seconds, and each attempt as in the type claimed_attempt. If that is too long, the notification has
-- only the claim.
-- PostgreSQL commits transactions that notify one after another. So that few of them wait for each other's disks, at most three
-- at a time notify inside their transactions. The others return messages, which their process sends after the commit. A worker
-- that receives such a message looks for its claims.
create or replace function notify_workers(p_assigned assignment[], p_queue text) returns message[]
language plpgsql
as $$
declare
    v_assigned assignment;
    v_text text;
    v_sent text;
begin
    if not (pg_try_advisory_xact_lock(7, -5) or pg_try_advisory_xact_lock(7, -6) or pg_try_advisory_xact_lock(7, -7)) then
        return array(select (0, 'assigned.' || a.worker, '{}')::message from unnest(p_assigned) a);
    end if;
    -- Assignments run no query, which `perform` would.
    foreach v_assigned in array p_assigned loop
        v_text := json_build_object('claim', v_assigned.claim, 'queue', p_queue, 'claimed', v_assigned.attempts,
            'at', extract(epoch from clock_timestamp()))::text;
        if octet_length(v_text) >= 7900 then
            v_text := json_build_object('claim', v_assigned.claim)::text;
        end if;
        v_sent := pg_notify(v_assigned.channel, v_text);
    end loop;
    return '{}';
end $$;
