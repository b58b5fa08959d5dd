-- Take at most `p_most` permits of workers for a definition on a queue, the oldest first. A permit is valid for 5 s. Its worker
-- must be active. The session that listens for the permit must be alive: it is that of the worker, or of the gateway at which the
-- worker waits. A living session holds its advisory lock, so a lock that this transaction can get proves that the session has
-- ended. A permit that another transaction has locked is skipped.
-- planner: lookups_planned_once
create or replace function take_permits(p_queue text, p_definition integer, p_most integer) returns permit[]
language plpgsql
as $$
declare
    v_taken permit[];
begin
    with taken as (
        delete from permit where ctid = any (array(
            select p.ctid from permit p join process w on w.id = p.worker
            where p.queue = p_queue and p.at > clock_timestamp() - interval '5 seconds'
                and p_definition = any (p.definitions) and w.state = 'active'
                and not pg_try_advisory_xact_lock_shared(coalesce(p.lock_key, w.lock_key))
            order by p.at limit p_most for update of p skip locked))
        returning permit
    )
    select array_agg(permit) into v_taken from taken;
    return v_taken;
end $$;
