-- Settle the wait of an attempt for something outside, once. With `p_result` the execution completes, and with `p_error` it
-- fails. With an error and `p_delay`, it is requested again. A timeout, a cancel and another outcome may come at the same time.
-- The first transaction to move the execution out of waiting wins. If the attempt still runs, the outcome is kept until its wait
-- begins. `answer` is `settled`, `kept`, `same` (it has this outcome already) or `over` (nothing was changed).
-- planner: lookups
create or replace function settle_outside(
    p_execution uuid, p_attempt integer, p_result text, p_error text, p_reason text, p_delay double precision, p_by text,
    out messages message[], out answer text
)
language plpgsql
as $$
declare
    v_status text;
    v_attempt integer;
    v_keys limit_key[];
    v_kept jsonb;
    v_settled timestamptz;
    v_moved uuid[];
    v_counts boolean := false;
    v_messages message[] := '{}';
    v_outcome constant jsonb := case when p_error is null then jsonb_build_object('result', p_result::jsonb)
        else jsonb_build_object('error', p_error::jsonb, 'reason', p_reason, 'delay', p_delay) end;
begin
    messages := '{}';
    answer := 'over';
    select e.status, e.attempt, e.keys into v_status, v_attempt, v_keys from execution e where e.id = p_execution for no key update;
    select w.outcome, w.settled_at into v_kept, v_settled from outside_wait w
    where w.execution_id = p_execution and w.attempt = p_attempt;
    if v_kept is not null and (v_settled is not null or v_status = 'running') then
        answer := case when v_kept - 'delay' - 'reason' = v_outcome - 'delay' - 'reason' then 'same' else 'over' end;
        return;
    end if;
    if v_attempt is distinct from p_attempt then
        return;
    end if;
    if v_status = 'running' then
        insert into outside_wait (execution_id, attempt, tenant, outcome)
        select e.id, p_attempt, split_part(n.name, '::', 1), v_outcome
        from execution e join namespace n on n.id = e.namespace_id where e.id = p_execution
        on conflict (execution_id) do update
            set attempt = excluded.attempt, outcome = excluded.outcome, settled_at = null, name = null, due_at = null;
        answer := 'kept';
        return;
    end if;
    if v_status <> 'waiting' or not exists (
            select from outside_wait w where w.execution_id = p_execution and w.attempt = p_attempt and w.settled_at is null) then
        return;
    end if;
    if exists (select from unnest(v_keys) k join concurrency_limit l on l.id = k.limit_id and l.breaker is not null
               where not exists (select from slot s where s.limit_id = k.limit_id and s.group_value = k.group_value
                                 and s.execution_id = p_execution)) then
        -- The outcome counts for a breaker before the retry joins its lane. All keys are locked now, in their order. They include
        -- the keys that the retry needs, in case its limits have changed.
        v_counts := true;
        perform lock_placement();
        perform lock_keys(keys_around(v_keys || (select c.keys from find_candidates(array[p_execution]) c)));
    end if;
    update outside_wait set outcome = v_outcome, settled_at = clock_timestamp(), due_at = null where execution_id = p_execution;
    if p_error is not null then
        update attempt set outcome = 'failed', error = p_error::jsonb where execution_id = p_execution and attempt = p_attempt;
        if v_counts then
            v_messages := count_outside(array[p_execution]);
        end if;
    end if;
    if p_delay is not null then
        update execution set status = 'requested', since = null, reason = case when ends_as is null then p_reason else reason end,
            failures = least(failures::bigint + 1, 2147483647),
            ready_at = clock_timestamp() + make_interval(secs => p_delay),
            not_before = case when p_delay > 0
                         then clock_timestamp() + make_interval(secs => p_delay) end
        where id = p_execution;
        messages := v_messages
            || settle_moves(null, array[p_execution], case when v_keys is not null then held_by(array[p_execution]) end);
    elsif p_error is not null then
        select v_messages || x.messages, x.moved into messages, v_moved from end_executions(array[p_execution], array['waiting'],
            'failed', p_reason, p_error) x;
    else
        select x.messages, x.moved into messages, v_moved
        from complete_waits(array[p_execution], array[p_result], array['completed by ' || p_by]) x;
        if v_counts then
            messages := messages || count_outside(array[p_execution]);
        end if;
    end if;
    answer := 'settled';
end $$;
