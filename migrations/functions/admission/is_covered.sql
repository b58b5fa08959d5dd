-- Return true if a hold covers a namespace: an action covers its executions wherever they run, and a workflow also its tasks; a pack
-- its actions and workflows; a route what runs there; a tenant all of its actions and workflows.
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
