-- Request that durable functions which have begun end with `p_status`. The effect depends on what a function does:
-- - A running function learns of the request from its worker.
-- - A waiting function is woken, even from a question or a wait for something outside.
-- - A function that waits for its retry becomes due now.
-- - All others read the request when they run.
-- The request does not change the status, so an attempt after a crash reads it, too. `told` are the functions with a new request.
-- A function with an earlier request is not in `told`. If the new request is by hand, the caller ends such a function like any
-- other execution.
-- planner: lookups
create or replace function tell_functions(p_ids uuid[], p_status text, p_reason text, out messages message[], out told uuid[])
language plpgsql
as $$
declare
    v_delayed uuid[];
begin
    with asked as (
        update execution e set ends_as = p_status, reason = p_reason
        from definition d
        where e.id = any (p_ids) and e.attempt > 0 and e.ends_as is null
            and e.status in ('requested', 'queued', 'scheduled', 'running', 'waiting')
            and d.id = e.definition_id and d.body ? 'durable'
        returning e.id
    )
    select coalesce(array_agg(id order by id), '{}') into told from asked;
    messages := '{}';
    if told = '{}' then
        return;
    end if;
    messages := wake_functions(told, p_reason);
    with undelayed as (
        update execution set not_before = null
        where id = any (told) and status = 'requested' and not_before <> held_until()
        returning id
    )
    select array_agg(id order by id) into v_delayed from undelayed;
    if v_delayed is not null then
        messages := messages || request_again(v_delayed);
    end if;
end $$;
