-- Return true if an execution that has not begun is past its `expires`. No worker may claim it: an executor ends it (end_unstarted).
-- Executions with such a timer are marked `timed`.
create or replace function has_expired(p_id uuid) returns boolean
language sql stable
as $$
    select exists (select from timer where execution_id = p_id and kind = 'expires' and due_at <= clock_timestamp())
$$;
