-- Stage started executions on their routes, and begin the waits of waiting ones.
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
