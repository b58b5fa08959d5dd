-- Stage started executions on their route; for waiting tasks (`p_kind` = wait), begin the waits.
create or replace function send_on(p_kind text, p_queue text, p_ids uuid[], p_size integer) returns message[]
language plpgsql
as $$
begin
    if p_kind = 'wait' then
        return begin_waits(p_ids);
    else
        return stage(p_queue, p_ids, p_size);
    end if;
end $$;
