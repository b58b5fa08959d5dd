-- Answer an inquiry, once. An answer, a timeout and a cancel may come at the same time. The first transaction to move the
-- execution out of waiting wins. `moved` is empty if this call of the function lost. The answer becomes the execution's result.
-- An attempt that asked in order to go on is an exception: its execution is requested again, with the answer. Stage a message for
-- listeners.
create or replace function answer_inquiry(
    p_execution uuid, p_response text, p_by text, out messages message[], out moved uuid[]
)
language plpgsql
as $$
declare
    v_reason constant text := 'answered by ' || p_by;
begin
    if exists (select from attempt t join execution e on e.id = t.execution_id and e.attempt = t.attempt
               where t.execution_id = p_execution and t.outcome = 'waiting' and t.error -> 'carry' ? 'resume') then
        select r.messages, r.moved into messages, moved from resume_asking(p_execution, p_response::jsonb, v_reason) r;
    else
        select c.messages, c.moved into messages, moved
        from complete_waits(array[p_execution], array[p_response], array[v_reason]) c;
    end if;
    if moved <> '{}' then
        update inquiry set status = 'responded', answered_at = clock_timestamp(), response = p_response::jsonb, responder = p_by
        where execution_id = p_execution;
        messages := messages || stage('inquiry.responded', moved, 50);
    end if;
end $$;
