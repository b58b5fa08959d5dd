-- Return the lost fires among the open fires `p_ids`: their executions have no row in `execution`. The caller has already settled
-- the fires with archived executions. `p_first` and `p_last` are the bounds of the due instants, which limit the partitions.
-- Delete open fires of which the retention has dropped the fire.
-- planner: lookups
create or replace function find_lost_fires(p_ids uuid[], p_first timestamptz, p_last timestamptz) returns lost_fire[]
language plpgsql
as $$
declare
    v_gone uuid[];
    v_lost lost_fire[];
begin
    select array_agg(o.execution_id) into v_gone
    from unnest(p_ids) as d (id) join open_fire o on o.execution_id = d.id
    where not exists (select from execution e where e.id = o.execution_id);
    if v_gone is null then
        return '{}';
    end if;
    select coalesce(array_agg((f.schedule, f.due_at, f.execution_id, f.kind, f.definition_id, s.namespace_id, f.recoveries,
        clock_timestamp())::lost_fire), '{}') into v_lost
    from open_fire o
    join fire f on f.schedule = o.schedule and f.due_at = o.due_at and f.execution_id = o.execution_id
    left join schedule s on s.ref = f.schedule
    where o.execution_id = any (v_gone) and f.due_at between p_first and p_last;
    -- The retention has dropped the fire of these rows, so nothing is left to recover.
    delete from open_fire o
    where o.execution_id = any (v_gone)
        and not exists (select from fire f where f.schedule = o.schedule and f.due_at = o.due_at
                            and f.execution_id = o.execution_id);
    return v_lost;
end $$;
