-- What a re-run keeps: the results of the executions of kept tasks. Copied, so that it is there however long the re-run
-- takes, and whatever becomes of the run before.
create table workflow_kept (
    execution_id uuid not null,
    task integer not null,
    item integer not null,
    result jsonb,
    error jsonb,
    primary key (execution_id, task, item)
);

-- How the tasks of a workflow stand, and what it kept itself: all that a later re-run needs to know of it.
create function workflow_state(p_id uuid) returns jsonb
language sql stable
as $$
    select jsonb_build_object(
        'tasks', (select coalesce(jsonb_object_agg(t.task, t.record), '{}') from workflow_task t where t.execution_id = p_id),
        'kept', (select coalesce(jsonb_agg(to_jsonb(k) - 'execution_id'), '[]') from workflow_kept k where k.execution_id = p_id))
$$;

-- Copies the results of these tasks from the run before: of its own executions, and of what that one kept itself.
create function keep_results(p_new uuid, p_old uuid, p_tasks integer[], p_names text[]) returns void
language plpgsql
as $$
begin
    insert into workflow_kept (execution_id, task, item, result, error)
    select p_new, k.task, e.item, r.result, r.error
    from unnest(p_tasks, p_names) as k (task, name)
    join execution e on e.parent = p_old and e.task = k.name
    join result r on r.execution_id = e.id;
    if not found then
        insert into workflow_kept (execution_id, task, item, result, error)
        select p_new, k.task, a.item, a.result, a.error
        from unnest(p_tasks, p_names) as k (task, name)
        join archive a on a.task = k.name
        where a.parent = p_old and a.root = (select root from archive where id = p_old limit 1);
    end if;
    insert into workflow_kept (execution_id, task, item, result, error)
    select p_new, k.task, k.item, k.result, k.error from workflow_kept k
    where k.execution_id = p_old and k.task = any (p_tasks)
    union all
    select p_new, k.task, k.item, k.result, k.error
    from archive a cross join jsonb_to_recordset(a.state -> 'kept') as k (task integer, item integer, result jsonb, error jsonb)
    where a.id = p_old and k.task = any (p_tasks)
    on conflict do nothing;
end $$;

-- Runs an execution that has ended once more: a new one, of the same version, with the same parameters and options. Returns
-- nothing if it has not ended or is not known any more.
create function rerun_execution(p_new uuid, p_old uuid, p_origin text, p_task text, p_value text, p_by text, p_reason text)
returns setof staged
language plpgsql
as $$
declare
    v_old record;
begin
    select x.* into v_old from (
        select e.namespace_id, e.definition_id, e.priority, p.params::text as params, p.options::text as options
        from execution e join payload p on p.execution_id = e.id
        where e.id = p_old and e.finished_at is not null
        union all
        select n.id, a.definition_id, a.priority, a.params::text, a.options::text
        from archive a join namespace n on n.name = a.namespace
        where a.id = p_old
    ) x limit 1;
    if not found then
        return;
    end if;
    return query select null::bigint, 'requested', array[p_new];
    return query select * from request_executions(array[p_new], array[v_old.namespace_id], array[v_old.definition_id],
        array[v_old.params], array[v_old.options], array[p_origin], array[v_old.priority], null, null, null, null, false);
    if found then
        insert into workflow_command (execution_id, kind, task, value, by, reason, obeyed_at)
        values (p_old, 'rerun', p_task, p_value::jsonb, p_by, p_reason, clock_timestamp());
    end if;
end $$;
