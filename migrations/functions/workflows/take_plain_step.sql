-- Complete one task for a worker, advance its workflow, and claim the one task that follows. This is the usual step, with nothing
-- to decide. If the state has changed, `taken` is false, as in take_steps. `taken` is null, and nothing is done, unless all of
-- this holds:
-- - No status is announced or subscribed to.
-- - No workflow is paused, and none of the worker's queues has a backlog.
-- - The next task is an action that the worker knows, on one of its queues, without limit, hold, times or labels.
-- - The workflow has neither a trace nor labels.
-- - The worker still runs the ended attempt, which holds no slot.
-- PN003 is raised if the next task exists already. The function does what complete_tasks, write_workflows and take_children do,
-- with statements for one row, which cost half. The function writes the history itself, and tells the triggers so by the setting
-- `penstock.moves`. The triggers accept it only from the owner, so the function has the owner's rights.
-- planner: lookups_planned_once
create or replace function take_plain_step(
    p_workflow uuid, p_version integer, p_stops integer,
    p_worker uuid, p_ended uuid, p_attempt integer, p_result text, p_claims uuid[],
    p_head text, p_tasks integer[], p_failing boolean[], p_records text[],
    p_ref text, p_current integer, p_new uuid, p_namespace integer, p_definition integer, p_params text, p_origin text, p_task text,
    p_claim uuid, p_queues text[], p_known integer[],
    out taken boolean, out queue text, out claimed claimed_attempt[]
)
language plpgsql security definer
as $$
declare
    v_actor constant text := current_setting('application_name');
    v_queue text;
    v_action text;
    v_priority smallint;
    v_reason text;
    v_ready_at timestamptz;
begin
    claimed := '{}';
    if not pg_try_advisory_xact_lock(hashtextextended(p_workflow::text, 11)) then
        taken := false;
        return;
    end if;
    -- A transaction that cancels the workflow together with its tasks locks this row first.
    select e.priority into v_priority
    from workflow w join execution e on e.id = w.execution_id
    where w.execution_id = p_workflow and w.version = p_version and w.stops = p_stops and e.status = 'running'
    for no key update of w skip locked;
    if not found then
        taken := false;
        return;
    end if;
    select n.queue, n.name into v_queue, v_action
    from namespace n, definition f, catalog c, cluster u
    where u.id = 1 and u.announced = '{}' and u.subscribed = '{}'
        and n.id = p_namespace and n.kind = 'action' and n.limits = '{}' and n.hold is null and n.queue = any (p_queues)
        and f.id = p_definition and f.id = any (p_known) and not f.body ?| '{timeouts,warn_after,run_labels,searchable}'
        and c.kind = 'action' and c.ref = p_ref and c.definition_id = p_current and c.enabled
        and not exists (select from paused_workflow)
        and not exists (select from backlog b where b.queue = any (p_queues))
        and not exists (select from payload p where p.execution_id in (p_workflow, p_ended) and p.origin ? 'trace')
        and not exists (select from label l where l.execution_id = p_workflow);
    if not found then
        return;
    end if;
    perform set_config('penstock.moves', 'written', true);
    update execution e set status = 'completed', since = null, not_before = null, finished_at = clock_timestamp()
    where e.id = p_ended and e.attempt = p_attempt and e.claim = p_worker and e.status = 'running'
        and e.keys is null and e.parent = p_workflow
    returning e.reason into v_reason;
    if not found then
        perform set_config('penstock.moves', '', true);
        return;
    end if;
    taken := true;
    insert into result (execution_id, result) values (p_ended, p_result::jsonb);
    delete from live where execution_id = p_ended;
    if exists (select from timer where execution_id = p_ended) then -- see close_executions for locked timers
        delete from timer where ctid = any (array(
            select ctid from timer where execution_id = p_ended for update skip locked));
    end if;
    delete from claim where id = any (p_claims);

    update workflow set head = p_head::jsonb, version = version + 1 where execution_id = p_workflow;
    for i in 1 .. cardinality(p_tasks) loop
        insert into workflow_task (execution_id, task, failing, record)
        values (p_workflow, p_tasks[i], p_failing[i], p_records[i]::jsonb)
        on conflict (execution_id, task) do update set failing = excluded.failing, record = excluded.record;
    end loop;

    insert into execution (id, status, attempt, claim, namespace_id, definition_id, priority, ready_at, parent, task, item)
    values (p_new, 'running', 1, p_worker, p_namespace, p_definition, v_priority, clock_timestamp(), p_workflow, p_task, -1)
    on conflict do nothing returning ready_at into v_ready_at;
    if not found then
        raise exception 'tasks exist already' using errcode = 'PN003';
    end if;
    insert into history (execution_id, at, old, new, attempt, actor, reason, ready_at) values
        (p_ended, clock_timestamp(), 'running', 'completed', p_attempt, v_actor, v_reason, null),
        (p_new, clock_timestamp(), null, 'requested', 0, v_actor, null, v_ready_at),
        (p_new, clock_timestamp() + interval '1 microsecond', 'requested', 'scheduled', 0, v_actor, null, null),
        (p_new, clock_timestamp() + interval '2 microseconds', 'scheduled', 'running', 1, v_actor, null, null);
    insert into payload (execution_id, params, origin) values (p_new, p_params::jsonb, p_origin::jsonb);
    insert into live (execution_id) values (p_new);
    insert into claim (id, worker, executions) values (p_claim, p_worker, array[p_new])
    on conflict (id) do update set executions = claim.executions || excluded.executions;
    perform set_config('penstock.moves', '', true);
    queue := v_queue;
    claimed := array[(p_new, 1, 0, v_action, p_definition, 0, p_params, null, null, p_workflow, root_of(p_workflow), p_task, null)::claimed_attempt];
end $$;
