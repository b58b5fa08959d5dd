-- Return the role of this session as a part of the origin of what it submits (`{"role": ...}`), if it is a client's: such a role
-- cannot read executions. Return null for all other roles.
create or replace function submitting_role() returns jsonb
language sql stable
as $$
    select case when not has_table_privilege(session_user, 'execution'::regclass, 'select')
        then jsonb_build_object('role', session_user) end
$$;
