-- Store the workflow that runs an action once for each item, and make it the current one. Return true if another workflow, or
-- none, was current before. A worker calls this and may write no other definition, so the function has the owner's rights.
-- Therefore it checks that the ref has a form that only Penstock uses, and that the only task runs the action in the ref. The
-- caller holds the placement lock, and then places the namespaces again.
create or replace function store_item_workflow(p_ref text, p_digest text, p_body jsonb) returns boolean
language plpgsql security definer
as $$
declare
    v_id integer;
begin
    if p_ref !~ '^[a-z][a-z0-9_]*[.][a-z][a-z0-9_]*-items$' or jsonb_array_length(p_body -> 'tasks') <> 1
        or coalesce(p_body #>> '{tasks,0,action}', p_body #>> '{tasks,0,workflow}') is distinct from left(p_ref, -length('-items'))
    then
        raise insufficient_privilege using message = format('%s is not a workflow of the items of an action', p_ref);
    end if;
    insert into definition (kind, ref, digest, body) values ('workflow', p_ref, p_digest, p_body)
    on conflict (kind, ref, digest) do nothing;
    select id into v_id from definition where kind = 'workflow' and ref = p_ref and digest = p_digest;
    insert into catalog as c (kind, ref, definition_id) values ('workflow', p_ref, v_id)
    on conflict (kind, ref) do update set definition_id = excluded.definition_id, updated_at = clock_timestamp()
    where c.definition_id <> excluded.definition_id;
    return found;
end $$;
