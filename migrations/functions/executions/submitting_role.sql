-- Return the role of this session as a part of an origin (`{"role": ...}`) if it is a client's role, which cannot read
-- executions. Return null for every other role.
create or replace function submitting_role() returns jsonb
language sql stable
as $$
    select case when not has_table_privilege(session_user, 'execution'::regclass, 'select')
        then jsonb_build_object('role', session_user) end
$$;
