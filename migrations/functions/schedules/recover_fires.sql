-- Give lost fires (settle_fires) a new execution, or end those as failed that have a reason in `p_errors`. `p_old` are their lost
-- executions. The caller holds the locks of the fires. `recovered` is the number of fires with a new execution.
-- planner: lookups
create or replace function recover_fires(
    p_schedules text[], p_dues timestamptz[], p_old uuid[], p_ids uuid[], p_namespaces integer[], p_actions integer[],
    p_params text[], p_options text[], p_origins text[], p_errors text[], out messages message[], out recovered integer
)
language plpgsql
as $$
declare
    v_new uuid[];
    r record;
begin
    with given as materialized (
        select * from unnest(p_schedules, p_dues, p_old, p_ids, p_errors) as d (schedule, due_at, old, id, error)
    ), gone as (
        delete from open_fire o using given d where o.execution_id = d.old
    ), moved as (
        update fire f set status = case when d.error is null then 'created' else 'failed' end,
            execution_id = case when d.error is null then d.id else f.execution_id end,
            recoveries = f.recoveries + (d.error is null)::integer, error = d.error
        from given d where f.schedule = d.schedule and f.due_at = d.due_at and f.execution_id = d.old
        returning f.schedule, f.due_at, f.status, f.execution_id, d.old
    ), opened as (
        insert into open_fire (execution_id, schedule, due_at)
        select execution_id, schedule, due_at from moved where status = 'created'
    ), last as (
        update schedule s set last_execution = m.execution_id
        from moved m where s.ref = m.schedule and s.last_execution = m.old
    )
    select coalesce(array_agg(execution_id) filter (where status = 'created'), '{}') into v_new from moved;
    messages := '{}';
    recovered := cardinality(v_new);
    if recovered = 0 then
        return;
    end if;
    select array_agg(d.id) as ids, array_agg(d.namespace_id) as namespaces, array_agg(d.action_id) as actions,
        array_agg(d.params) as params, array_agg(d.options) as options, array_agg(d.origin) as origins
    into r from unnest(p_ids, p_namespaces, p_actions, p_params, p_options, p_origins)
        as d (id, namespace_id, action_id, params, options, origin)
    where d.id = any (v_new);
    messages := start_fires(r.ids, r.namespaces, r.actions, r.params, r.options, r.origins, null);
end $$;
