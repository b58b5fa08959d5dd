-- Answers an inquiry, once: respond, timeout and cancel have one winner, which is who moves the execution out of
-- waiting. The answer becomes the execution's result. Returns what it staged and, as `moved`, the execution.
create or replace function answer_inquiry(p_execution uuid, p_response text, p_by text) returns setof staged
language plpgsql
as $$
begin
    return query select * from complete_waits(array[p_execution], array[p_response], array['answered by ' || p_by]);
    if found then
        update inquiry set status = 'responded', response = p_response::jsonb, responder = p_by,
            answered_at = clock_timestamp()
        where execution_id = p_execution;
    end if;
end $$;
