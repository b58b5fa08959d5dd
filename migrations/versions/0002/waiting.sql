-- Asks the runs to end that a waiting fire replaces. Repeated until they have ended, so no crash forgets it.
create function cancel_replaced() returns setof staged
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
    v_ids uuid[];
begin
    select array_agg(distinct e.id order by e.id) into v_ids
    from waiting_fire w
    join schedule s on s.ref = w.schedule
    join execution e on e.id = s.last_execution
    where w.replaces and e.finished_at is null and e.status <> 'canceling';
    if v_ids is not null then
        return query select * from cancel_executions(v_ids, 'replaced by a newer fire of its schedule');
    end if;
end $$;

-- queued -> created for the first waiting fire of each schedule whose last run has ended, and its execution.
create function start_waiting_fires(p_limit integer) returns setof staged
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
    v_refs text[];
begin
    select array_agg(x.ref) into v_refs from (
        select s.ref
        from (select distinct schedule from waiting_fire) w
        join schedule s on s.ref = w.schedule
        where not exists (select from execution e where e.id = s.last_execution and e.finished_at is null)
        order by s.ref limit p_limit for update of s skip locked
    ) x;
    if v_refs is null then
        return;
    end if;

    -- A later statement: who held the row before may have started a run.
    return query
    with head as materialized (
        select distinct on (w.schedule) w.*
        from waiting_fire w join schedule s on s.ref = w.schedule
        where w.schedule = any (v_refs)
            and not exists (select from execution e where e.id = s.last_execution and e.finished_at is null)
        order by w.schedule, w.due_at
    ), gone as (
        delete from waiting_fire w using head h where w.schedule = h.schedule and w.due_at = h.due_at
    ), moved as (
        update fire f set status = 'created' from head h
        where f.schedule = h.schedule and f.due_at = h.due_at and f.status = 'queued'
    ), opened as (
        insert into open_fire (execution_id, schedule, due_at) select execution_id, schedule, due_at from head
    ), last as (
        update schedule s set last_execution = h.execution_id, last_due = greatest(s.last_due, h.due_at)
        from head h where s.ref = h.schedule
    ), all_of as (
        select array_agg(execution_id) as ids, array_agg(namespace_id) as namespaces, array_agg(definition_id) as actions,
            array_agg(params::text) as params, array_agg(options::text) as options, array_agg(origin::text) as origins,
            array_agg(case when not_before > clock_timestamp() then not_before end) as not_before
        from head
    )
    select r.* from all_of a
    cross join lateral request_executions(a.ids, a.namespaces, a.actions, a.params, a.options, a.origins, null,
        a.not_before, null, null, null, true) r
    where a.ids is not null;
end $$;

-- Waiting fires that will not start any more: their schedule was disabled or deleted.
create function drop_waiting_fires(p_schedule text, p_reason text) returns void
language sql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
    with gone as (
        delete from waiting_fire where schedule = p_schedule returning schedule, due_at
    )
    update fire f set status = 'skipped', execution_id = null, error = p_reason
    from gone g where f.schedule = g.schedule and f.due_at = g.due_at and f.status = 'queued'
$$;
