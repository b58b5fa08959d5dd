-- Submit at most 20 executions of one namespace and one definition, in a transaction of their own. Assign one of them to a
-- worker for each permit that there is, the oldest permit first. An assigned execution is created as running, and claimed
-- by its worker. All others are staged on their route.
-- If there is nothing to decide, one statement writes all rows, and the history instead of the trigger. That requires that
-- no limit and no hold covers the namespace, that no worker lacks the action, that the definition is current and has neither
-- times nor labels, and that no status is announced or subscribed to. All other submits go to submit_executions before anything is
-- written. An id that exists was submitted before, and its answer was lost: it is left alone.
-- A permit is valid for 5 s. Its worker must be active, and the session that listens for it must hold its lock: that of the
-- worker's heartbeats, or of the gateway where the worker waits. (If this transaction gets that lock, the session has ended.)
-- An assignment to a waiting take has the claim id of the take. `p_assigns` is false if the transaction
-- may stay open. Nothing is assigned on an ordered route where other work waits. The origin of an execution that a client's
-- role submits has that role.
-- A single execution, the usual case, is written by plain statements for one row: they cost half of the statement for several.
-- planner: indexes_planned_once
create or replace function place_alike(
    p_ids uuid[], p_namespace integer, p_definition integer, p_params text[], p_origins text[], p_priority smallint, p_assigns boolean,
    out messages message[], out stale boolean, out existing replaced_id[], out conflicts replaced_id[]
)
language plpgsql security definer
as $$
declare
    v_actor constant text := current_setting('application_name');
    v_size constant integer := cardinality(p_ids);
    v_role constant jsonb := submitting_role();
    v_queue text;
    v_name text;
    v_envelope smallint;
    v_assigned assignment[];
    v_ordered boolean;
    v_params jsonb;
    v_origin jsonb;
    v_permits permit[];
    v_permit permit;
    v_inserted execution;
    v_message bigint;
begin
    select n.queue, n.name, n.envelope, exists (select from ordered_route o where o.queue = n.queue)
    into v_queue, v_name, v_envelope, v_ordered
    from namespace n, definition f, catalog c, cluster u
    where n.id = p_namespace and n.kind = 'action' and n.limits = '{}' and not n.lacked and n.hold is null
        and f.id = p_definition and c.kind = f.kind and c.ref = f.ref and c.definition_id = f.id and c.enabled
        and not f.body ?| '{timeouts,warn_after,run_labels,searchable}' and u.id = 1 and u.announced = '{}' and u.subscribed = '{}';
    if not found then
        select s.messages, s.stale, s.existing, s.conflicts into messages, stale, existing, conflicts
        from submit_executions(p_ids, array_fill(p_namespace, array[v_size]), array_fill(p_definition, array[v_size]), p_params,
            null, p_origins, array_fill(p_priority, array[v_size]), null, null, null, null, null, true) s;
        return;
    end if;
    perform check_ids(p_ids);
    stale := false;
    existing := '{}';
    conflicts := '{}';
    if v_ordered and exists (select from backlog where queue = v_queue) then
        p_assigns := false; -- what waits comes first
    end if;
    perform set_config('penstock.moves', 'written', true);
    if p_assigns then
        with taken as (
            delete from permit where ctid = any (array(
                select p.ctid from permit p join process w on w.id = p.worker
                where p.queue = v_queue and p.at > clock_timestamp() - interval '5 seconds'
                    and p_definition = any (p.definitions) and w.state = 'active'
                    and not pg_try_advisory_xact_lock_shared(coalesce(p.lock_key, w.lock_key))
                order by p.at limit v_size for update of p skip locked))
            returning permit
        )
        select array_agg(permit) into v_permits from taken;
    end if;
    if v_size = 1 then
        v_permit := v_permits[1];
        messages := '{}';
        v_params := p_params[1]::jsonb;
        v_origin := p_origins[1]::jsonb;
        if v_role is not null then
            v_origin := coalesce(v_origin, '{}') || v_role;
        end if;
        insert into execution (id, status, attempt, claim, namespace_id, definition_id, priority)
        values (p_ids[1], case when v_permit.worker is null then 'scheduled' else 'running' end,
            (v_permit.worker is not null)::integer, v_permit.worker, p_namespace, p_definition, p_priority)
        on conflict do nothing returning * into v_inserted;
        if found then
            insert into payload (execution_id, params, origin) values (v_inserted.id, v_params, v_origin);
            insert into live (execution_id) values (v_inserted.id);
            insert into history (execution_id, at, old, new, attempt, actor, ready_at) values
                (v_inserted.id, clock_timestamp(), null, 'requested', 0, v_actor, v_inserted.ready_at),
                (v_inserted.id, clock_timestamp() + interval '1 microsecond', 'requested', 'scheduled', 0, v_actor, null);
            if v_permit.worker is null then
                insert into outbox (queue, ids) values (v_queue, p_ids) returning id into v_message;
                messages := array[(v_message, v_queue, p_ids)::message];
            else
                insert into history (execution_id, at, old, new, attempt, actor)
                values (v_inserted.id, clock_timestamp() + interval '2 microseconds', 'scheduled', 'running', 1, v_permit.actor);
                v_permit.claim := coalesce(v_permit.claim, gen_random_uuid());
                insert into claim (id, worker, executions, assigned) values (v_permit.claim, v_permit.worker, p_ids, true)
                on conflict (id) do update set executions = claim.executions || excluded.executions;
                v_assigned := array[(coalesce(v_permit.holder, v_permit.worker), v_permit.channel, v_permit.claim, json_build_array(
                    json_build_array(v_inserted.id, 1, 0, v_name, p_definition, 0, v_params::text, null, null, null, null, null,
                        (v_origin -> 'trace')::text)))::assignment];
            end if;
        end if;
    else
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
    end if;
    perform set_config('penstock.moves', '', true);
    if v_assigned is not null then
        messages := messages || notify_workers(v_assigned, v_queue);
    end if;
    if (v_ordered or p_priority <> 0) and messages <> '{}' then
        perform join_backlog(v_queue, p_ids);
    end if;
end $$;
