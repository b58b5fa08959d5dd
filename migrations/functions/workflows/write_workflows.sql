-- Write the result of an advance: the state of the workflows `p_ids` (`p_heads`), the state of their tasks, and the variables
-- that tasks published. `p_of` has the workflow of each task, and `p_by` the workflow of each variable. The caller holds the
-- locks of the workflows.
-- planner: hashed_planned_once
create or replace function write_workflows(
    p_ids uuid[], p_heads text[],
    p_of uuid[], p_tasks integer[], p_failing boolean[], p_records text[],
    p_by uuid[], p_writers integer[], p_names text[], p_values text[]
) returns void
language plpgsql
as $$
begin
    update workflow w set head = x.head::jsonb, version = w.version + 1
    from unnest(p_ids, p_heads) as x (id, head)
    where w.execution_id = any (p_ids) and w.execution_id = x.id;
    if p_of <> '{}' then
        insert into workflow_task as t (execution_id, task, failing, record)
        select x.id, x.task, x.failing, x.record::jsonb
        from unnest(p_of, p_tasks, p_failing, p_records) as x (id, task, failing, record)
        on conflict (execution_id, task) do update set failing = excluded.failing, record = excluded.record;
    end if;
    if p_by <> '{}' then
        insert into workflow_variable (execution_id, writer, name, value)
        select x.id, x.writer, x.name, x.value::jsonb
        from unnest(p_by, p_writers, p_names, p_values) as x (id, writer, name, value)
        on conflict (execution_id, writer, name) do update set value = excluded.value;
    end if;
end $$;
