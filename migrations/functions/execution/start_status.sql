-- What an execution becomes when it starts: work waits on its route for a worker, a workflow runs at once, a task that waits
-- begins to.
create or replace function start_status(p_kind text) returns text
language sql immutable
as $$
    select case p_kind when 'action' then 'scheduled' when 'wait' then 'waiting' else 'running' end
$$;
