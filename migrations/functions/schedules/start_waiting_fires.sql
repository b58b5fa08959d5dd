-- Start the first waiting fire of each schedule without an open run: queued -> created, with its execution. A call of this
-- function handles at most `p_limit` schedules. Return the number of started fires.
-- planner: lookups
create or replace function start_waiting_fires(p_limit integer, out messages message[], out started integer)
language plpgsql
as $$
declare
    v_refs text[];
    r record;
begin
    messages := '{}';
    started := 0;
    select array_agg(x.ref) into v_refs from (
        select s.ref
        from (select distinct schedule from startable_fires()) w
        join schedule s on s.ref = w.schedule
        where s.ref not in (select o.schedule from open_runs(array(select distinct schedule from waiting_fire)) o)
        order by s.ref limit p_limit for update of s skip locked
    ) x;
    if v_refs is null then
        return;
    end if;

    -- This is a later statement, after the lock. The replica that held the schedule's row before may have started a run.
    with head as materialized (
        select distinct on (w.schedule) w.*
        from startable_fires() w
        where w.schedule = any (v_refs) and w.schedule not in (select o.schedule from open_runs(v_refs) o)
        order by w.schedule, w.due_at
    ), gone as (
        delete from waiting_fire w using head h where w.schedule = h.schedule and w.due_at = h.due_at
    ), moved as (
        update fire f set status = 'created' from head h
        where f.schedule = h.schedule and f.due_at = h.due_at
    ), opened as (
        insert into open_fire (execution_id, schedule, due_at) select execution_id, schedule, due_at from head
    ), last as (
        update schedule s set last_execution = h.execution_id, last_due = greatest(s.last_due, h.due_at)
        from head h where s.ref = h.schedule
    )
    select array_agg(execution_id) as ids, array_agg(namespace_id) as namespaces, array_agg(definition_id) as actions,
        array_agg(params::text) as params, array_agg(options::text) as options, array_agg(origin::text) as origins,
        array_agg(case when not_before > clock_timestamp() then not_before end) as not_before
    into r from head;
    if r.ids is not null then
        started := cardinality(r.ids);
        messages := start_fires(r.ids, r.namespaces, r.actions, r.params, r.options, r.origins, r.not_before);
    end if;
end $$;
