-- Return the running attempts among these executions that have an owner, and that no claim of this owner names.
-- planner: indexes_unmerged
create or replace function find_unclaimed(p_ids uuid[]) returns uuid[]
language plpgsql
as $$
declare
    v_ids uuid[];
    v_workers uuid[];
begin
    select array_agg(id), array_agg(distinct claim) into v_ids, v_workers
    from execution where id = any (p_ids) and status in ('running', 'canceling') and claim is not null;
    if v_ids is null then
        return '{}';
    end if;
    return array(
        select o.id from (
            select e.id, e.claim from execution e
            where e.id = any (v_ids) and e.status in ('running', 'canceling') and e.claim is not null
            except select x, c.worker from claim c cross join unnest(c.executions) x where c.worker = any (v_workers)) o
        order by o.id);
end $$;
