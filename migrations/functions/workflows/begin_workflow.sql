-- Submit one execution of a workflow, in its own transaction, together with the first turn of the workflow. The process that
-- submits has decided the turn: the state of the workflow, and the tasks that start. `begun` is true if the turn was written. It
-- is false, and place_alike submits the execution without the turn, unless all of this holds:
-- - No limit and no hold covers the workflow or one of the tasks, and no worker lacks them.
-- - The definitions are current (are_stale), and have neither times nor labels. The tasks are actions.
-- - No status is announced or subscribed to.
-- - The execution has no trace, and no attempt started it.
-- An id that exists is left alone, since it was submitted before and the answer was lost. No transaction can see the workflow
-- before the commit, so no lock of it is needed.
-- The tasks start as in start_plain_execution: each is assigned to a worker that has a permit, or staged on its route. The function
-- writes the history of the workflow itself, and tells the triggers so by the setting `penstock.moves`. The triggers accept it only
-- from the owner, so the function has the owner's rights. A role of clients must not call it, since it writes states of workflows.
-- planner: lookups_planned_once
create or replace function begin_workflow(
    p_ids uuid[], p_namespace integer, p_definition integer, p_params text[], p_origins text[], p_priority smallint, p_assigns boolean,
    p_heads text[], p_tasks integer[], p_failing boolean[], p_records text[],
    p_writers integer[], p_names text[], p_values text[],
    p_refs text[], p_known integer[], p_new uuid[], p_namespaces integer[], p_definitions integer[],
    p_new_params text[], p_new_origins text[], p_new_tasks text[],
    out messages message[], out stale boolean, out existing replaced_id[], out conflicts replaced_id[], out begun boolean
)
language plpgsql security definer
as $$
declare
    v_actor constant text := current_setting('application_name');
    v_id constant uuid := p_ids[1];
    v_size constant integer := cardinality(p_new);
    v_name text;
    v_ready_at timestamptz;
    v_queues text[];
    v_actions text[];
    v_ordered boolean;
    v_assigns boolean;
begin
    select n.name into v_name
    from namespace n, definition f, catalog c, cluster u
    where n.id = p_namespace and n.kind = 'workflow' and n.limits = '{}' and not n.lacked and n.hold is null
        and f.id = p_definition and c.kind = f.kind and c.ref = f.ref and c.definition_id = f.id and c.enabled
        and not f.body ?| '{timeout,timeouts,warn_after,run_labels,searchable}'
        and u.id = 1 and u.announced = '{}' and u.subscribed = '{}'
        and not coalesce(p_origins[1]::jsonb ?| '{trace,started_by}', false);
    begun := found and not are_stale(p_refs, p_known);
    if begun then
        select array_agg(n.queue order by d.place), array_agg(n.name order by d.place) into v_queues, v_actions
        from unnest(p_namespaces, p_definitions) with ordinality d (namespace_id, definition_id, place)
        join namespace n on n.id = d.namespace_id
        join definition f on f.id = d.definition_id
        where n.kind = 'action' and n.limits = '{}' and not n.lacked and n.hold is null
            and not f.body ?| '{timeouts,warn_after,run_labels,searchable}';
        begun := coalesce(cardinality(v_queues), 0) = v_size;
    end if;
    if not begun then
        select s.messages, s.stale, s.existing, s.conflicts into messages, stale, existing, conflicts
        from place_alike(p_ids, p_namespace, p_definition, p_params, p_origins, p_priority, p_assigns) s;
        return;
    end if;
    perform check_ids(p_ids);
    messages := '{}';
    stale := false;
    existing := '{}';
    conflicts := '{}';
    perform set_config('penstock.moves', 'written', true);
    insert into execution (id, status, namespace_id, definition_id, priority)
    values (v_id, 'running', p_namespace, p_definition, p_priority)
    on conflict do nothing returning ready_at into v_ready_at;
    perform set_config('penstock.moves', '', true);
    if v_ready_at is null then
        return;
    end if;
    insert into payload (execution_id, params, origin) values (v_id, p_params[1]::jsonb, p_origins[1]::jsonb);
    insert into live (execution_id) values (v_id);
    insert into history (execution_id, at, old, new, attempt, actor, ready_at) values
        (v_id, clock_timestamp(), null, 'requested', 0, v_actor, v_ready_at),
        (v_id, clock_timestamp() + interval '1 microsecond', 'requested', 'running', 0, v_actor, null);
    insert into workflow (execution_id, definition_id, tenant, depth, head, version)
    values (v_id, p_definition, split_part(v_name, '::', 1), 0, p_heads[1]::jsonb, 1);
    for i in 1 .. cardinality(p_tasks) loop
        insert into workflow_task (execution_id, task, failing, record)
        values (v_id, p_tasks[i], p_failing[i], p_records[i]::jsonb);
    end loop;
    for i in 1 .. cardinality(p_names) loop
        insert into workflow_variable (execution_id, writer, name, value)
        values (v_id, p_writers[i], p_names[i], p_values[i]::jsonb);
    end loop;
    for i in 1 .. v_size loop
        v_ordered := exists (select from ordered_route where queue = v_queues[i]);
        v_assigns := p_assigns and not (v_ordered and exists (select from backlog where queue = v_queues[i])); -- the backlog comes first
        messages := messages || start_plain_execution(p_new[i], 'action', v_queues[i], v_actions[i], p_namespaces[i], p_definitions[i],
            p_new_params[i]::jsonb, p_new_origins[i]::jsonb, p_priority, v_id, p_new_tasks[i], -1, v_assigns, v_ordered);
    end loop;
end $$;
