-- Return true if a hold of the kind `p_kind` and the name `p_name` covers a namespace. A hold of an action covers its executions
-- on every route and in every workflow. A hold of a workflow, which has the kind `action` too, covers the workflow and its tasks.
-- A hold of a pack or a tenant covers all of its actions and workflows. A hold of a route covers the executions on that route. No
-- hold covers a namespace of waiting tasks.
create or replace function is_covered(p_kind text, p_name text, p_namespace namespace) returns boolean
language sql immutable
as $$
    select p_namespace.kind <> 'wait' and case p_kind
        when 'action' then p_name in (p_namespace.action,
            split_part(p_namespace.name, '::', 2) || '.' || split_part(p_namespace.name, '::', 3))
        when 'pack' then p_name = split_part(p_namespace.action, '.', 1)
        when 'route' then p_namespace.queue = 'work.' || p_name
        else p_name = split_part(p_namespace.name, '::', 1) end
$$;
