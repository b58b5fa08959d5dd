-- Park scheduled executions of an action that some worker of their route lacks, until a worker that has the action takes
-- them. On the route, the worker that lacks the action could receive them first.
create or replace function park_lacked(p_ids uuid[], p_queue text) returns message[]
language plpgsql
as $$
begin
    insert into parked (execution_id, queue, definition_id, rank, ready_at)
    select id, p_queue, definition_id, -priority, ready_at from execution where id = any (p_ids);
    return array[(0, 'parked.' || p_queue, '{}')::message];
end $$;
