-- Return true if the execution was admitted before the breaker of one of its keys opened. No worker may claim such an execution:
-- return_blocked puts it back into its lane.
create or replace function is_blocked(p_id uuid, p_keys limit_key[]) returns boolean
language sql stable
as $$
    select exists (
        select from breaker b join slot s on s.limit_id = b.limit_id and s.group_value = b.group_value
        where s.execution_id = p_id and s.admitted_at < b.opened_at
            and (b.limit_id, b.group_value)::limit_key = any (p_keys))
$$;
