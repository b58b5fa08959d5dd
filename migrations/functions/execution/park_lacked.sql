-- What has just been scheduled and some worker of its route lacks waits in `parked` for one that has it, in place of going
-- on its route, where that worker may be the first to get it.
create or replace function park_lacked(p_ids uuid[], p_queue text) returns message[]
language plpgsql
as $$
begin
    insert into parked (execution_id, queue, definition_id, ready_at)
    select id, p_queue, definition_id, ready_at from execution where id = any (p_ids);
    return array[(0, 'parked.' || p_queue, '{}')::message];
end $$;
