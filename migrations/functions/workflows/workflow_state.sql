-- Return the state of a workflow's tasks, and the results that it kept from an earlier run. A later re-run needs no more than
-- these.
create or replace function workflow_state(p_id uuid) returns jsonb
language sql stable
as $$
    select jsonb_build_object(
        'tasks', (select coalesce(jsonb_object_agg(t.task, t.record), '{}') from workflow_task t where t.execution_id = p_id),
        'kept', (select coalesce(jsonb_agg(to_jsonb(k) - 'execution_id'), '[]') from workflow_kept k where k.execution_id = p_id))
$$;
