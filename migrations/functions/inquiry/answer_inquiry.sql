-- Answers an inquiry, once: respond, timeout and cancel have one winner, which is who moves the execution out of
-- waiting. The answer becomes the execution's result. `moved` is empty if another transaction ended it first.
create or replace function answer_inquiry(
    p_execution uuid, p_response text, p_by text, out messages message[], out moved uuid[]
)
language plpgsql
as $$
begin
    select c.messages, c.moved into messages, moved
    from complete_waits(array[p_execution], array[p_response], array['answered by ' || p_by]) c;
    if moved <> '{}' then
        update inquiry set response = p_response::jsonb, responder = p_by where execution_id = p_execution;
    end if;
end $$;
