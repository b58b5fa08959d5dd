-- Return true if no active worker serves this route and has this action. Only namespaces under limits can be away. Without
-- limits, executions wait on their route, where they block no other execution.
create or replace function is_away(p_limits integer[], p_kind text, p_queue text, p_action text) returns boolean
language plpgsql stable
as $$
begin
    return p_limits <> '{}' and p_kind = 'action' and not exists (
        select from process p
        where p.kind = 'worker' and p.state = 'active' and substr(p_queue, 6) = any (p.routes)
            and p_action = any (p.actions));
end $$;
