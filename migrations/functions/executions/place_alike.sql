-- Submit at most 20 executions of one namespace and one definition, in their own transaction. Assign one of them to a worker for
-- each permit (take_permits): such an execution is created as running, and claimed by its worker. The others are staged on their
-- route. The fast path writes all rows of several actions in one statement. The fast path requires all of this:
-- - No limit and no hold covers the namespace, and no worker lacks the action.
-- - The definition is current, and has neither times nor labels.
-- - No status is announced or subscribed to.
-- All other submits go to submit_executions before anything is written. A single execution, the usual case, is left to
-- start_plain_execution, and may also be of a workflow. An id that exists is left alone, since it was submitted before and the
-- answer was lost.
-- An assignment to a waiting take has the claim id of the take. `p_assigns` is false if the transaction may stay open. Nothing is
-- assigned on an ordered route with a backlog. If a client's role submits, the origin of the executions has that role.
-- The function writes the history itself, and tells the triggers so by the setting `penstock.moves`. The triggers accept it only
-- from the owner, so the function has the owner's rights.
-- planner: indexes_planned_once
create or replace function place_alike(
    p_ids uuid[], p_namespace integer, p_definition integer, p_params text[], p_origins text[], p_priority smallint, p_assigns boolean,
    out messages message[], out stale boolean, out existing replaced_id[], out conflicts replaced_id[]
)
language plpgsql security definer
as $$
declare
    v_actor constant text := current_setting('application_name');
    -- An assignment to these runs no query, which `perform` would.
    v_moves text;
    v_checked text;
    v_size constant integer := cardinality(p_ids);
    v_role constant jsonb := submitting_role();
    v_kind text;
    v_queue text;
    v_name text;
    v_envelope smallint;
    v_assigned assignment[];
    v_ordered boolean;
    v_origin jsonb;
    v_permits permit[];
begin
    select n.kind, n.queue, n.name, n.envelope, exists (select from ordered_route o where o.queue = n.queue)
    into v_kind, v_queue, v_name, v_envelope, v_ordered
    from namespace n, definition f, catalog c, cluster u
    where n.id = p_namespace and (n.kind = 'action' or n.kind = 'workflow' and v_size = 1) and n.limits = '{}' and not n.lacked and n.hold is null
        and f.id = p_definition and c.kind = f.kind and c.ref = f.ref and c.definition_id = f.id and c.enabled
        and not f.body ?| '{timeouts,warn_after,run_labels,searchable}'
        and not (f.kind = 'workflow' and f.body ? 'timeout') and u.id = 1 and u.announced = '{}' and u.subscribed = '{}';
    if not found then
        select s.messages, s.stale, s.existing, s.conflicts into messages, stale, existing, conflicts
        from submit_executions(p_ids, array_fill(p_namespace, array[v_size]), array_fill(p_definition, array[v_size]), p_params,
            null, p_origins, array_fill(p_priority, array[v_size]), null, null, null, null, null, true) s;
        return;
    end if;
    v_checked := check_ids(p_ids);
    stale := false;
    existing := '{}';
    conflicts := '{}';
    if v_ordered then
        if exists (select from backlog where queue = v_queue) then
            p_assigns := false; -- the backlog comes first
        end if;
    end if;
    if v_size = 1 then
        v_origin := p_origins[1]::jsonb;
        if v_role is not null then
            v_origin := coalesce(v_origin, '{}') || v_role;
        end if;
        messages := start_plain_execution(p_ids[1], v_kind, v_queue, v_name, p_namespace, p_definition, p_params[1]::jsonb,
            v_origin, p_priority, null, null, -1, p_assigns, v_ordered);
        return;
    end if;
    if p_assigns then
        v_permits := take_permits(v_queue, p_definition, v_size);
    end if;
    v_moves := set_config('penstock.moves', 'written', true);
    with takers as materialized (
        select worker, channel, actor, coalesce(claim, gen_random_uuid()) as claim, coalesce(holder, worker) as listener
        from unnest(v_permits) group by worker, channel, actor, claim, holder
    ), placed as materialized (
        select d.id, d.params::jsonb as params,
            case when v_role is null then d.origin::jsonb else coalesce(d.origin::jsonb, '{}') || v_role end as origin, d.place, t.worker
        from unnest(p_ids, p_params, p_origins) with ordinality d (id, params, origin, place)
        left join (select worker, row_number() over (order by worker) as place from unnest(v_permits)) t on t.place = d.place
    ), written as (
        insert into execution (id, status, attempt, claim, namespace_id, definition_id, priority)
        select id, case when worker is null then 'scheduled' else 'running' end, (worker is not null)::integer, worker,
            p_namespace, p_definition, p_priority
        from placed order by place
        on conflict do nothing returning id, claim as worker, ready_at
    ), moves as (
        insert into history (execution_id, at, old, new, attempt, actor, ready_at)
        select w.id, clock_timestamp() + m.later, m.old, m.new, m.attempt, case m.attempt when 0 then v_actor else t.actor end,
            case when m.old is null then w.ready_at end
        from written w left join takers t on t.worker = w.worker, (values
            (interval '0', null, 'requested', 0), (interval '1 microsecond', 'requested', 'scheduled', 0),
            (interval '2 microseconds', 'scheduled', 'running', 1)) m (later, old, new, attempt)
        where m.attempt = 0 or w.worker is not null
    ), payloads as (
        insert into payload (execution_id, params, origin)
        select d.id, d.params, d.origin from written w join placed d on d.id = w.id
    ), open as (
        insert into live (execution_id) select id from written
    ), claims as (
        insert into claim (id, worker, executions, assigned)
        select t.claim, t.worker, array_agg(w.id order by w.id), true from written w join takers t on t.worker = w.worker group by t.claim, t.worker
        on conflict (id) do update set executions = claim.executions || excluded.executions
    ), staged as (
        insert into outbox (queue, ids)
        select v_queue, array_agg(x.id order by x.place) from (
            select d.id, row_number() over (order by d.place) as place
            from written w join placed d on d.id = w.id where w.worker is null) x
        group by (x.place - 1) / v_envelope
        returning id, queue, ids
    )
    select coalesce((select array_agg((id, queue, ids)::message) from staged), '{}'),
        (select array_agg((x.listener, x.channel, x.claim, x.attempts)::assignment) from (
            select t.listener, t.channel, t.claim, json_agg(json_build_array(d.id, 1, 0, v_name, p_definition, 0, d.params::text,
                null, null, null, null, null, (d.origin -> 'trace')::text)) as attempts
            from written w join placed d on d.id = w.id join takers t on t.worker = w.worker group by t.listener, t.channel, t.claim) x)
    into messages, v_assigned;
    v_moves := set_config('penstock.moves', '', true);
    if v_assigned is not null then
        messages := messages || notify_workers(v_assigned, v_queue);
    end if;
    if (v_ordered or p_priority <> 0) and messages <> '{}' then
        perform join_backlog(v_queue, p_ids);
    end if;
end $$;
