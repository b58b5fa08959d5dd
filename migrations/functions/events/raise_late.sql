-- Raise `penstock.execution.late` for each of these executions that has not ended within `warn_after` of its first start. A timer
-- of the kind `late` leads to a call of this function. The timer was set when the execution was created. If the execution has
-- started later or not at all, set the timer again. One transaction deletes a timer, so the event is raised once.
-- A workflow starts when it is admitted. An action starts with the claim of its first attempt. The claim is deleted when that
-- attempt ends, so the instant is then read from the history. The history is searched for at most an hour after the creation. If
-- it has no entry there, the time counts from the end of the first attempt.
-- planner: tails
create or replace function raise_late(p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    v_due uuid[];
    v_details jsonb[];
begin
    with started as materialized (
        select e.id, (f.body ->> 'warn_after')::double precision as seconds, case
            when n.kind <> 'action' then case when e.status not in ('requested', 'queued') then coalesce(e.since, e.ready_at) end
            when e.attempt = 0 then null
            else coalesce((
                select c.claimed_at from claim c where e.attempt = 1 and c.worker = e.claim and e.id = any (c.executions) limit 1), (
                select min(h.at) from history h
                where h.execution_id = e.id and h.new = 'running' and h.at between e.created_at and t.at and t.at < e.created_at + interval '1 hour'),
                t.at, clock_timestamp()) end as at
        from execution e
        join namespace n on n.id = e.namespace_id
        join definition f on f.id = e.definition_id and f.body ? 'warn_after'
        left join attempt t on t.execution_id = e.id and t.attempt = 1
        where e.id = any (p_ids) and e.finished_at is null
    ), later as (
        insert into timer (due_at, kind, execution_id)
        select coalesce(s.at, clock_timestamp()) + make_interval(secs => s.seconds), 'late', s.id from started s
        where s.at is null or s.at + make_interval(secs => s.seconds) > clock_timestamp()
        on conflict do nothing
        returning execution_id
    )
    select array_agg(s.id), array_agg(jsonb_build_object('warn_after', s.seconds)) into v_due, v_details
    from started s where s.id not in (select execution_id from later);
    if v_due is null then
        return '{}';
    end if;
    return raise_execution_events('penstock.execution.late', v_due, v_details);
end $$;
