-- Free the slots in `p_held`, and promote the next waiters. An execution in `p_held` without a slot leaves its lane instead. The
-- candidates in `p_line` (null: none) join their lanes before the promotion. Attempts with freed slots count for breakers. The
-- caller has moved the rows of these executions in this transaction, so no other transaction admits one of them meanwhile. Rows
-- are locked before keys.
-- planner: lookups
create or replace function release(p_held held[], p_line candidate[]) returns message[]
language plpgsql
as $$
declare
    v_keys limit_key[] := array(
        select (k.limit_id, k.group_value)::limit_key from (select distinct limit_id, group_value from unnest(p_held)) k);
    v_joined limit_key[] := array(select distinct k from unnest(p_line) c cross join unnest(c.keys) k);
    v_locked limit_key[] := v_keys || v_joined;
    v_freed uuid[];
    v_weighted held[];
    v_attempts integer[];
    v_waiting uuid[];
    v_calls breaker_call[];
    v_messages message[] := '{}';
    v_now timestamptz;
    v_new limit_key[];
begin
    -- If no slot is freed, the keys around these are not needed. A caller that refuses new executions (refuse) holds the locks of
    -- these keys already.
    if exists (select from unnest(p_held) h join slot s
               on s.limit_id = h.limit_id and s.group_value = h.group_value and s.execution_id = h.execution_id) then
        v_locked := keys_around(v_locked);
    end if;
    perform lock_keys(v_locked);
    -- `offset 0` forces a look-up for each slot: a plan that was made while the table was small would scan all slots.
    with freed as (
        delete from slot where ctid = any (array(
            select x.ctid from unnest(p_held) h cross join lateral (
                select s.ctid from slot s where s.limit_id = h.limit_id and s.group_value = h.group_value
                    and s.execution_id = h.execution_id offset 0) x))
        returning execution_id, attempt, limit_id, group_value, cost, admitted_at
    )
    select array_agg(execution_id), array_agg((execution_id, limit_id, group_value)::held) filter (where cost is not null),
        array_agg(attempt) filter (where cost is not null),
        array_agg((execution_id, limit_id, group_value, attempt, admitted_at)::breaker_call)
            filter (where limit_id in (select id from concurrency_limit where breaker is not null))
    into v_freed, v_weighted, v_attempts, v_calls from freed;
    if v_weighted is not null then
        -- An attempt that no worker has claimed took nothing of its budget.
        delete from budget_entry y using unnest(v_weighted, v_attempts) f (execution_id, limit_id, group_value, attempt)
        join concurrency_limit l on l.id = f.limit_id and l.budget = l.id
        join execution e on e.id = f.execution_id and e.attempt < f.attempt
        where y.owner = case when l.budget is not null then f.group_value::uuid end and y.unit = l.unit
            and y.execution_id = f.execution_id and y.attempt = f.attempt;
    end if;
    v_waiting := array(select h.execution_id from unnest(p_held) h except select unnest(v_freed));
    if v_waiting <> '{}' then
        perform leave_line(v_waiting, false);
    end if;
    if p_line <> '{}' then
        v_new := join_line(find_lanes(set_costs(p_line)));
    end if;
    if v_calls is not null then
        v_now := clock_timestamp();
        perform note_calls(v_calls);
        v_messages := raise_opened_breakers(v_calls, v_now);
    end if;
    v_messages := v_messages || promote(v_keys || v_joined);
    if v_new is not null then
        -- An executor that knows of no waiting lane looks again only after 10 s. That would be too late for the next start of a
        -- rate, or for a probe.
        v_messages := v_messages || timers_set((
            select min(w.at) from unnest(v_new) k
            join concurrency_limit l on l.id = k.limit_id and (l.rate_count is not null or l.breaker is not null)
            join wake w on w.limit_id = k.limit_id and w.group_value = k.group_value));
    end if;
    return v_messages;
end $$;
