-- Return the executions among `p_ids` that have ended. Also record the executions for which the watcher waits from now on
-- (`p_said`), and delete its rows for those in `p_forgotten`. A call of this function may miss an execution that ends at the same
-- time: the next call returns it. A role that cannot read the tables waits only for executions that it started, as in
-- find_executions. The function has the owner's rights, since a role that can read the table could listen on another watcher's
-- channel.
-- planner: lookups_planned_once
create or replace function look_for_awaited(p_watcher uuid, p_ids uuid[], p_said uuid[], p_forgotten uuid[])
returns table (id uuid, status text, result text, error text)
language plpgsql security definer
as $$
begin
    if not has_table_privilege(session_user, 'execution'::regclass, 'select') then
        p_ids := own_executions(p_ids);
        p_said := own_executions(p_said);
    end if;
    if p_forgotten <> '{}' then
        delete from awaited a where a.watcher = p_watcher and a.execution_id = any (p_forgotten);
    end if;
    if p_said <> '{}' then
        insert into awaited (execution_id, watcher) select x, p_watcher from unnest(p_said) x order by 1 on conflict do nothing;
    end if;
    return query
    select e.id, e.status, r.result::text, r.error::text
    from execution e left join result r on r.execution_id = e.id
    where e.id = any (p_ids) and e.finished_at is not null;
end $$;
