-- A worker ends attempts: final, or requested again (a retry, a deferral), or waiting for an inquiry. The fence is the
-- attempt and the claim (I2): what another owns by now is not moved and not in the answer `moved`.
-- Slots are freed and the next waiters promoted in the same transaction (I5).
-- planner: hashed_planned_once
create or replace function finish_attempts(
    p_worker uuid, p_ids uuid[], p_attempts smallint[], p_statuses text[], p_results text[], p_errors text[],
    p_delays double precision[], p_untils timestamptz[], p_reasons text[], p_followed uuid[], p_claims uuid[]
) returns setof staged
language plpgsql
as $$
declare
    v_held held[];
    v_moved uuid[];
    v_final uuid[];
    v_again uuid[];
    v_roots uuid[];
    v_follow uuid[];
    v_asked uuid[];
begin
    with moved as (
        update execution e
        set status = case when e.status = 'canceling' and d.status in ('requested', 'waiting', 'failed') then 'cancelled'
                          else d.status end,
            failures = e.failures + (d.error is not null)::integer,
            claim = case when d.status in ('requested', 'waiting') then null else e.claim end,
            ready_at = case when d.status <> 'requested' then e.ready_at
                       else greatest(d.until, clock_timestamp() + make_interval(secs => d.delay)) end,
            not_before = case when d.status <> 'requested' or e.status = 'canceling' then null
                         when d.until > clock_timestamp() then d.until
                         when d.delay > 0 then clock_timestamp() + make_interval(secs => d.delay) end,
            finished_at = case when d.status in ('requested', 'waiting') and e.status <> 'canceling' then null
                          else clock_timestamp() end,
            reason = coalesce(d.reason, e.reason)
        from unnest(p_ids, p_attempts, p_statuses, p_results, p_errors, p_delays, p_untils, p_reasons)
            as d (id, attempt, status, result, error, delay, until, reason)
        where e.id = any (p_ids) and e.id = d.id and e.attempt = d.attempt and e.claim = p_worker and e.status in ('running', 'canceling')
        returning e.id, e.status, e.parent, e.attempt, e.not_before, e.definition_id, e.keys,
            d.status as outcome, d.result, d.error
    ), told as (
        insert into result (execution_id, result, error)
        select id, case when outcome not in ('requested', 'waiting') then result::jsonb end, error::jsonb
        from moved where status not in ('requested', 'waiting')
    ), tried as (
        insert into attempt (execution_id, attempt, outcome, worker, error)
        select id, attempt, outcome, current_setting('application_name'),
            -- what a deferral carries over to the next attempt, and what an inquiry asks, are kept here
            coalesce(error::jsonb, case when outcome in ('requested', 'waiting') and result is not null
                                   then jsonb_build_object('carry', result::jsonb) end)
        from moved
        where status <> 'completed'
        on conflict do nothing
    ), asked as (
        insert into inquiry (execution_id, prompt, schema, assignee, default_answer, due_at)
        select moved.id, result::jsonb ->> 'prompt', nullif(result::jsonb -> 'schema', 'null'), result::jsonb ->> 'assignee',
            nullif(result::jsonb -> 'default', 'null'),
            clock_timestamp() + make_interval(secs => coalesce((result::jsonb ->> 'timeout')::double precision,
                (select coalesce(p.options #>> '{timeouts,waiting}', f.body #>> '{timeouts,waiting}')::double precision
                 from definition f left join payload p on p.execution_id = moved.id where f.id = moved.definition_id)))
        from moved
        where moved.status = 'waiting'
        on conflict do nothing
    ), timed as (
        insert into timer (due_at, kind, execution_id)
        select not_before, 'ready', id from moved where status = 'requested' and not_before is not null
    )
    select array_agg(id),
        array_agg(id) filter (where status not in ('requested', 'waiting')),
        array_agg(id) filter (where status = 'requested' and not_before is null),
        array_agg(id) filter (where parent is null and status not in ('requested', 'waiting')),
        array_agg(id) filter (where status not in ('requested', 'waiting')
                              and (parent is not null or id = any (p_followed))),
        (select array_agg((x.id, (x.key).limit_id, (x.key).group_value)::held)
         from (select m.id, unnest(m.keys) as key from moved m where m.status <> 'waiting' or not keeps_slots(m.keys)) x)
    into v_moved, v_final, v_again, v_roots, v_follow, v_held
    from moved;

    if p_claims <> '{}' then
        delete from claim where id = any (p_claims);
    end if;
    if v_moved is null then
        return;
    end if;
    return query select null::bigint, 'moved', v_moved;

    if v_final is not null then
        delete from live where execution_id = any (v_final);
    end if;
    if v_roots is not null then
        insert into finished (ids) values (v_roots);
    end if;
    if 'waiting' = any (p_statuses) then
        select array_agg(execution_id) into v_asked from inquiry
        where execution_id = any (v_moved) and status = 'created';
    end if;
    if v_asked is not null then
        return query select * from stage('inquiry.created', v_asked, 50);
    end if;
    if v_follow is not null then
        return query select * from tell_ends(v_follow);
    end if;
    if v_again is not null then
        return query select * from stage('execution.requested', v_again, 50);
    end if;
    if v_held is not null then
        return query select * from release_slots(v_held);
    end if;
end $$;
