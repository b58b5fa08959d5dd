-- Return the status in which an execution of a kind starts. An action is scheduled on its route, a workflow runs at once, and a
-- waiting task waits.
create or replace function start_status(p_kind text) returns text
language sql immutable
as $$
    select case p_kind when 'action' then 'scheduled' when 'wait' then 'waiting' else 'running' end
$$;
