-- Send the signals that suspended functions wait for, if an operator has given their results. The nth result that an operator
-- gave for a signal name is its nth signal, and is sent after the signals before it. The caller has locked the executions, and
-- wakes them.
-- planner: lookups
create or replace function send_given_signals(p_ids uuid[]) returns void
language sql
as $$
    insert into step (execution_id, name, ordinal, place, kind, status, attempt, result)
    select s.execution_id, g ->> 0, t.ordinal, 0, 'signal', 'completed', 0, t.result
    from suspended s cross join jsonb_array_elements(s.signals) g
    join step t on t.execution_id = s.execution_id and 'signal/' || t.name = g ->> 0 and t.ordinal = (g ->> 1)::integer
    where s.execution_id = any (p_ids) and t.kind = 'given' and t.told is null
        and (t.ordinal = 1 or exists (select from step b
            where b.execution_id = s.execution_id and b.name = g ->> 0 and b.ordinal = t.ordinal - 1))
    on conflict do nothing
$$;
