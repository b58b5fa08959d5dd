-- Record how the executions of at most `p_limit` open fires ended. `settled` is the number of these fires, without those of
-- archived executions. `lost` are fires with an execution that is neither open nor finished nor archived. The caller, which now
-- holds their locks, starts them again.
-- planner: lookups
create or replace function settle_fires(p_limit integer, out settled integer, out lost lost_fire[])
language plpgsql
as $$
declare
    v_ids uuid[];
    v_ended ended_fire[];
    v_first timestamptz;
    v_last timestamptz;
begin
    settled := 0;
    lost := '{}';
    select array_agg(x.execution_id), min(x.due_at), max(x.due_at) into v_ids, v_first, v_last
    from (
        select o.execution_id, o.due_at
        from open_fire o left join execution e on e.id = o.execution_id
        where e.id is null or e.finished_at is not null
        order by o.execution_id limit p_limit for update of o skip locked
    ) x;
    if v_ids is null then
        return;
    end if;

    select array_agg((o.execution_id, o.schedule, o.due_at, e.status, e.finished_at, r.error)::ended_fire) into v_ended
    from open_fire o
    join execution e on e.id = o.execution_id
    left join result r on r.execution_id = o.execution_id
    where o.execution_id = any (v_ids);
    settled := write_outcomes(v_ended, v_first, v_last);
    if settled = cardinality(v_ids) then
        return;
    end if;

    select array_agg((o.execution_id, o.schedule, o.due_at, a.status, a.finished_at, a.error)::ended_fire) into v_ended
    from open_fire o join archive a on a.id = o.execution_id and a.finished_at >= o.made_at
    where o.execution_id = any (v_ids);
    perform write_outcomes(v_ended, v_first, v_last);
    lost := find_lost_fires(v_ids, v_first, v_last);
end $$;
