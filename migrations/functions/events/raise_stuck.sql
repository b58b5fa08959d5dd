-- Raise `penstock.execution.stuck` for executions that no live worker could run for `p_seconds`. A worker is live if it is active
-- and its heartbeat is younger than `p_stale` seconds. Two kinds of executions are checked. A scheduled one is stuck if no live
-- worker of its route has its action. A call of this function checks the next `p_limit` open executions after `p_after`. A queued
-- one is stuck if its lane stands aside until a worker comes. Only the first call of a pass checks these.
-- An execution keeps its instants when the clock goes back. So an instant that is to come counts as an old one. In its place, the
-- event has the instant since which its action has no worker, or the present one.
-- Each execution is reported once. The row in `stuck` is written in the same transaction, and deleted once the execution has
-- ended. `next` is the id to continue after, or null at the end of the pass.
-- planner: lookups
create or replace function raise_stuck(
    p_seconds double precision, p_stale double precision, p_after uuid, p_limit integer, out messages message[], out next uuid
)
language plpgsql
as $$
declare
    v_begins constant boolean := p_after = '00000000-0000-0000-0000-000000000000';
    v_ids uuid[];
    v_stuck uuid[];
    v_details jsonb[];
begin
    messages := '{}';
    if v_begins then
        delete from stuck s where not exists (select from execution e where e.id = s.execution_id and e.finished_at is null);
    end if;
    if not is_asked('penstock.execution.stuck') then
        return;
    end if;
    v_ids := array(select execution_id from live where execution_id > p_after order by execution_id limit p_limit);
    next := v_ids[cardinality(v_ids)];
    with candidate as (
        select e.id, n.queue, null::timestamptz as away_since, coalesce(e.since, e.ready_at) as since
        from execution e join namespace n on n.id = e.namespace_id and n.kind = 'action'
        where e.id = any (v_ids) and e.status = 'scheduled' and not exists (
            select from process p
            where p.kind = 'worker' and p.state = 'active' and substr(n.queue, 6) = any (p.routes) and n.action = any (p.actions)
                and p.beat_at > clock_timestamp() - make_interval(secs => p_stale))
        union all
        select e.id, n.queue, n.away_since, greatest(n.away_since, e.since, e.ready_at)
        from lane l join namespace n on n.id = l.namespace_id and n.away_since is not null
        join waiter w on w.lane = l.id join execution e on e.id = w.execution_id and e.status = 'queued'
        where v_begins and l.gate_kind = 'worker'
    ), waiting as (
        select id, queue, case when since <= clock_timestamp() then since else away_since end as since from candidate
    ), marked as (
        insert into stuck (execution_id)
        select w.id from waiting w where (w.since < clock_timestamp() - make_interval(secs => p_seconds)) is not false order by w.id
        on conflict do nothing returning execution_id
    )
    select array_agg(w.id), array_agg(jsonb_build_object('route', substr(w.queue, 6), 'waits_since',
        instant_text(coalesce(w.since, clock_timestamp()))))
    into v_stuck, v_details from waiting w join marked m on m.execution_id = w.id;
    if v_stuck is not null then
        messages := raise_execution_events('penstock.execution.stuck', v_stuck, v_details);
    end if;
end $$;
