-- Copy the results of these tasks from the run `p_old` to its re-run `p_new`. `p_tasks` are the numbers of the tasks, and
-- `p_names` their names. The results come from the executions of the old run, archived or not. Results that the old run itself
-- kept from an earlier run are copied, too.
create or replace function keep_results(p_new uuid, p_old uuid, p_tasks integer[], p_names text[]) returns void
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
