-- Write the result that an operator gives for a step of a durable function, so that the function skips the step. A step that is
-- over keeps its own result. Three kinds of steps are over: a step with a result, a step with an ended child, and a signal that
-- was sent. The result of a signal is stored now, and the signal is sent when the woken function waits for it again.
-- `known` is true if the execution is a durable function that has not ended. `given` is true if the step was not over and has the
-- result now. `open_child` is the running child of a step that had begun, which the caller has to cancel. A result that the
-- step's own attempt records later does not count. The row has the number of the present attempt, which may be about to suspend
-- itself (suspend_functions).
-- planner: lookups
create or replace function give_step(
    p_execution uuid, p_name text, p_ordinal integer, p_result text, p_kind text, p_by text, p_reason text,
    out messages message[], out known boolean, out given boolean, out open_child uuid
)
language plpgsql
as $$
declare
    v_attempt integer;
begin
    messages := '{}';
    given := false;
    select e.attempt into v_attempt from execution e join definition d on d.id = e.definition_id
    where e.id = p_execution and e.finished_at is null and d.body ? 'durable' for no key update of e;
    known := found;
    if not known then
        return;
    end if;
    insert into step as s (execution_id, name, ordinal, place, kind, status, attempt, result)
    select p_execution, p_name, p_ordinal, 0, 'given', 'completed', v_attempt, p_result::json
    where not exists (select from step g
        where g.execution_id = p_execution and g.name = 'signal/' || p_name and g.ordinal = p_ordinal)
    on conflict (execution_id, name, ordinal) do update set status = 'completed', result = excluded.result, error = null,
        at = clock_timestamp(), attempt = excluded.attempt
    where s.status = 'started' and s.told is null
        and not exists (select from execution c
            where c.parent = p_execution and c.task = p_name and c.item = p_ordinal and c.finished_at is not null);
    given := found;
    if given then
        insert into workflow_command (execution_id, kind, task, value, by, reason, obeyed_at)
        values (p_execution, p_kind, p_name, p_result::jsonb, p_by, p_reason, clock_timestamp());
        select id into open_child from execution
        where parent = p_execution and task = p_name and item = p_ordinal and finished_at is null;
        messages := wake_functions(array[p_execution], 'a step of the execution was given a result');
    end if;
end $$;
