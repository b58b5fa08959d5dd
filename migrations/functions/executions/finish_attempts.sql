-- End attempts of a worker: their executions end, are requested again (a retry, a deferral), or wait. The fence is the attempt
-- and the claim (I2). An execution that another worker has claimed, or that the sweeper has taken back, is not moved and not in
-- `moved`. Slots are freed, and the next waiters promoted, in the same transaction (I5).
-- An execution with a requested end gets that end, unless the attempt completed. If a durable function raises that request as its
-- error, the error gets the reason of the request. A durable function that has to clean up begins its next attempt without a
-- delay. An attempt with a null in `p_delays` was handed back, so its execution keeps its place in line. The attempt keeps the
-- values that a deferral passes to the next attempt, and the question of an inquiry. They are never the result of the execution:
-- only one that completed has a result.
-- planner: hashed_planned_once
create or replace function finish_attempts(
    p_worker uuid, p_ids uuid[], p_attempts integer[], p_statuses text[], p_results text[], p_errors text[],
    p_delays double precision[], p_untils timestamptz[], p_reasons text[], p_followed uuid[], p_claims uuid[],
    out messages message[], out moved uuid[]
)
language plpgsql
as $$
declare
    v_ended ended[];
    v_again uuid[];
    v_held held[];
    v_asking uuid[];
    v_asked jsonb[];
begin
    with changed as (
        update execution e
        set status = ended_status(e.status, e.ends_as, d.status),
            failures = least(e.failures::bigint + (d.error is not null)::integer, 2147483647),
            claim = case when d.status in ('requested', 'waiting') then null else e.claim end,
            ready_at = case when d.status = 'requested' and d.delay is not null
                       then greatest(d.until, clock_timestamp() + make_interval(secs => d.delay)) else e.ready_at end,
            since = case when d.delay is null then clock_timestamp() end,
            not_before = case when d.status <> 'requested' or e.ends_as is not null then null
                         when d.until > clock_timestamp() then d.until
                         when d.delay > 0 then clock_timestamp() + make_interval(secs => d.delay) end,
            finished_at = case when d.status not in ('requested', 'waiting') or e.status = 'canceling' then clock_timestamp() end,
            reason = case when d.status = 'completed' and e.ends_as is null then d.reason
                     else coalesce(case when e.ends_as is null then d.reason end, e.reason) end
        from unnest(p_ids, p_attempts, p_statuses, p_results, p_errors, p_delays, p_untils, p_reasons)
            as d (id, attempt, status, result, error, delay, until, reason)
        where e.id = any (p_ids) and e.id = d.id and e.attempt = d.attempt and e.claim = p_worker and e.status in ('running', 'canceling')
        returning e.id, e.status, e.parent, e.attempt, e.keys, d.result::jsonb,
            case when d.delay is null then 'handed_back'
                 when e.ends_as is not null and e.status in ('cancelled', 'timeout') then e.status
                 when d.status <> 'requested' then d.status
                 when d.error is null then 'deferred' else 'failed' end as outcome,
            coalesce(case when d.error::jsonb ->> 'type' = e.ends_as
                     then d.error::jsonb || jsonb_build_object('message', replace(d.error::jsonb ->> 'message',
                         'the run was asked to end as ' || e.ends_as, coalesce(e.reason, e.ends_as))) end,
                     d.error::jsonb, case when e.status in ('cancelled', 'timeout')
                     then jsonb_build_object('type', e.status, 'message', e.reason) end) as error
    ), tried as (
        insert into attempt (execution_id, attempt, outcome, worker, error)
        select id, attempt, outcome, current_setting('application_name'),
            coalesce(error, case when outcome in ('deferred', 'waiting') and result is not null
                                      and not result::jsonb ?| array['awaits', 'outside']
                                 then jsonb_build_object('carry', result) end)
        from changed where status <> 'completed' on conflict do nothing
    )
    select coalesce(array_agg(id), '{}'), array_agg(id) filter (where status = 'requested'),
        array_agg(id) filter (where status = 'waiting'), array_agg(result) filter (where status = 'waiting'),
        (select array_agg((c.id, k.limit_id, k.group_value)::held) from changed c cross join unnest(c.keys) k
         where c.status <> 'waiting' or not keeps_slots(c.keys)),
        array_agg((id, parent, status, true, parent is not null or id = any (p_followed),
                   case when status = 'completed' then result end, error)::ended)
            filter (where status not in ('requested', 'waiting'))
    into moved, v_again, v_asking, v_asked, v_held, v_ended from changed;

    messages := '{}';
    if v_asking is not null then
        messages := begin_waiting(v_asking, v_asked);
        -- What an execution waits for may have arrived already. Then the execution does not wait any more: it has freed its slots,
        -- and stands in its lane or holds a slot for its next attempt. It keeps that place.
        v_held := (select array_agg(h::held) from unnest(v_held) h where not (h.execution_id = any (v_asking)) or exists (
            select from execution e where e.id = h.execution_id and e.status = 'waiting'));
    end if;
    messages := messages || settle_moves(v_ended, v_again, v_held);
    if p_claims <> '{}' then -- last, since the events of the ends read the claims
        delete from claim where id = any (p_claims);
    end if;
end $$;
