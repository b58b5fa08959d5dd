-- Return the lost fires among these open fires: those without a row in `execution`. The caller has already settled fires with
-- archived executions. Open fires without their row in `fire` are deleted here, and each leaves a dead letter. The retention keeps that
-- row, so another program has deleted it.
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
    with missing as (
        delete from open_fire o
        where o.execution_id = any (v_gone)
            and not exists (select from fire f where f.schedule = o.schedule and f.due_at = o.due_at
                                and f.execution_id = o.execution_id)
        returning o.schedule, o.due_at, o.execution_id
    )
    insert into dead_letter (id, queue, reason, body, fingerprint)
    select gen_random_uuid(), 'schedule.fired', format('FireMissing: neither execution %s nor its fire of schedule %s, due at %s, is '
            'stored any more, so it is not started again', m.execution_id, m.schedule, instant_text(m.due_at)),
        convert_to(m.execution_id::text, 'utf8'), encode(sha256(convert_to('fire ' || m.execution_id, 'utf8')), 'hex')
    from missing m on conflict (fingerprint) do nothing;
    return v_lost;
end $$;
