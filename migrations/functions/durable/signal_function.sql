-- Record a signal for a durable function: a step `p_name` with the next ordinal of that name. Wake the function if it waits for
-- that signal. `known` is false if the execution has ended, or is not a durable function.
-- planner: lookups
create or replace function signal_function(p_execution uuid, p_name text, p_value text, out messages message[], out known boolean)
language plpgsql
as $$
declare
    v_next integer;
begin
    messages := '{}';
    -- The lock on the row serializes the signals of one name. It also keeps the function from being suspended meanwhile.
    perform from execution e join definition d on d.id = e.definition_id
    where e.id = p_execution and e.finished_at is null and d.body ? 'durable' for no key update of e;
    known := found;
    if not known then
        return;
    end if;
    select coalesce(max(ordinal), 0) + 1 into v_next from step where execution_id = p_execution and name = p_name;
    insert into step (execution_id, name, ordinal, place, kind, status, attempt, result)
    values (p_execution, p_name, v_next, 0, 'signal', 'completed', 0, p_value::json);
    if exists (select from suspended s, jsonb_array_elements(s.signals) g
               where s.execution_id = p_execution and g ->> 0 = p_name and (g ->> 1)::integer = v_next) then
        messages := wake_functions(array[p_execution], 'a signal that the execution waited for has come');
    end if;
end $$;
