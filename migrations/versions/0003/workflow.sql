-- The state of a workflow's run: one row for each execution (I6). `head` is small; of its tasks only those have a
-- row that have begun or of which something before has ended. `rerun`: of which run this is a re-run, and what it keeps.
-- `stops`: how often it was asked to stop; of these the head has obeyed so many as it says.
create table workflow (
    execution_id uuid primary key,
    definition_id integer not null,
    depth smallint not null default 0,
    tenant text not null,
    head jsonb,
    rerun jsonb,
    stops smallint not null default 0,
    stop_status text,
    stop_reason text
) with (fillfactor = 50);

create table workflow_task (
    execution_id uuid not null,
    task integer not null,
    failing boolean not null default false,
    record jsonb not null,
    primary key (execution_id, task)
) with (fillfactor = 50);

-- What tasks publish. A task publishes a variable once.
create table workflow_variable (
    execution_id uuid not null,
    writer integer not null,
    name text not null,
    value jsonb,
    primary key (execution_id, writer, name)
);

-- Items of fan-outs of which some start later.
create table workflow_item (
    execution_id uuid not null,
    task integer not null,
    item integer not null,
    value jsonb,
    primary key (execution_id, task, item)
);

-- What people told a workflow to do, who and why; obeyed under its lock, in order, and kept.
create table workflow_command (
    id bigint generated always as identity primary key,
    execution_id uuid not null,
    kind text not null,
    task text,
    value jsonb,
    by text not null,
    reason text,
    created_at timestamptz not null default clock_timestamp(),
    obeyed_at timestamptz,
    error text
);
create index workflow_command_open on workflow_command (execution_id) where obeyed_at is null;

-- Tells a running workflow something. Returns nothing if it does not run.
create function command_workflow(p_execution uuid, p_kind text, p_task text, p_value text, p_by text, p_reason text)
returns setof staged
language plpgsql
as $$
begin
    insert into workflow_command (execution_id, kind, task, value, by, reason)
    select w.execution_id, p_kind, p_task, p_value::jsonb, p_by, p_reason
    from workflow w join execution e on e.id = w.execution_id
    where w.execution_id = p_execution and e.status = 'running';
    if found then
        -- From now on nothing of it is scheduled; what was scheduled before is held when the command is obeyed.
        insert into paused_workflow (execution_id) select p_execution where p_kind = 'pause' on conflict do nothing;
        return query select * from stage('workflow.started', array[p_execution], 1);
    end if;
end $$;

-- A workflow has one mutator at a time: its lock is held until the transaction ends. Taken in order; what the caller
-- reads afterwards is what the last holder committed.
create function lock_workflows(p_ids uuid[]) returns void
language plpgsql
as $$
declare
    v_id uuid;
begin
    for v_id in select distinct x from unnest(p_ids) x order by 1 loop
        perform pg_advisory_xact_lock(hashtextextended(v_id::text, 11));
    end loop;
end $$;

-- Ends workflows: running -> p_statuses, with their results. Frees their slots and tells the workflows around them.
create function finish_workflows(p_ids uuid[], p_statuses text[], p_results text[], p_errors text[], p_reasons text[])
returns setof staged
language plpgsql
set enable_seqscan = off set enable_hashjoin = on set enable_mergejoin = off set enable_nestloop = off
as $$
declare
    v_moved uuid[];
    v_inside uuid[];
    v_roots uuid[];
begin
    with moved as (
        update execution e set status = d.status, finished_at = clock_timestamp(), reason = coalesce(d.reason, e.reason)
        from unnest(p_ids, p_statuses, p_results, p_errors, p_reasons) as d (id, status, result, error, reason)
        where e.id = any (p_ids) and e.id = d.id and e.status = 'running'
        returning e.id, e.parent, d.result, d.error
    ), told as (
        insert into result (execution_id, result, error) select id, result::jsonb, error::jsonb from moved
    )
    select array_agg(id), array_agg(id) filter (where parent is not null), array_agg(id) filter (where parent is null)
    into v_moved, v_inside, v_roots from moved;
    if v_moved is null then
        return;
    end if;
    delete from paused_workflow where execution_id = any (v_moved);
    return query select * from close_executions(v_moved, v_roots, v_inside);
end $$;

-- Asks running workflows to stop as p_status; their next advance cancels what is open. Asking again counts only while the
-- exit task runs: then that is cancelled too.
create function stop_workflows(p_ids uuid[], p_status text, p_reason text) returns setof staged
language plpgsql
as $$
declare
    v_asked uuid[];
begin
    perform make_workflows(p_ids); -- some may have started to run since they were locked
    with asked as (
        update workflow w set stop_status = coalesce(w.stop_status, p_status), stop_reason = coalesce(w.stop_reason, p_reason),
            stops = w.stops + 1
        from execution e
        where w.execution_id = any (p_ids) and (w.stop_status is null or w.head ->> 'phase' = 'exiting')
            and w.stops <= coalesce((w.head ->> 'stops')::smallint, 0)
            and e.id = w.execution_id and e.status = 'running'
        returning w.execution_id
    )
    select array_agg(execution_id) into v_asked from asked;
    if v_asked is not null then
        delete from paused_workflow where execution_id = any (v_asked);
        return query select null::bigint, 'stopping', v_asked;
        return query select * from stage('workflow.started', v_asked, 1);
    end if;
end $$;

-- What belongs to executions goes with them when they are archived.
create function execution_gone() returns trigger
language plpgsql
as $$
begin
    delete from workflow w using gone g where w.execution_id = g.id;
    delete from workflow_task t using gone g where t.execution_id = g.id;
    delete from workflow_variable v using gone g where v.execution_id = g.id;
    delete from workflow_item i using gone g where i.execution_id = g.id;
    delete from workflow_kept k using gone g where k.execution_id = g.id;
    delete from paused_workflow p using gone g where p.execution_id = g.id;
    delete from inquiry q using gone g where q.execution_id = g.id;
    return null;
end $$;

create trigger execution_gone after delete on execution
referencing old table as gone for each statement execute function execution_gone();

-- Wakes workflows whose own message was lost with the broker: running for longer than p_age and not begun, told something
-- that they have not obeyed, or with something due; and, though nothing should lead there, those that nothing moves on any
-- more. Goes round the open executions in the same steps as restage_lost.
create function restage_workflows(p_age interval, p_after uuid, p_limit integer) returns setof staged
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off
as $$
declare
    v_stuck uuid[];
begin
    select array_agg(e.id order by e.id) into v_stuck
    from (select execution_id from live where execution_id > p_after order by execution_id limit p_limit) x
    join execution e on e.id = x.execution_id
    join namespace n on n.id = e.namespace_id
    left join workflow w on w.execution_id = e.id
    where e.status = 'running' and n.queue = 'workflow.started' and e.ready_at < clock_timestamp() - p_age
        and (w.head is null or w.stops > (w.head ->> 'stops')::smallint
            or exists (select from workflow_command c where c.execution_id = e.id and c.obeyed_at is null
                       and c.created_at < clock_timestamp() - p_age)
            or not (w.head ->> 'paused')::boolean and (
                w.head -> 'due' <> '[]'
                or not exists (select from execution c where c.parent = e.id
                               and (c.finished_at is null or c.finished_at > clock_timestamp() - p_age))))
        and not exists (select from outbox o where o.queue = 'workflow.started' and e.id = any (o.ids));
    if v_stuck is not null then
        update execution set ready_at = clock_timestamp() where id = any (v_stuck) and status = 'running';
        return query select * from stage('workflow.started', v_stuck, 20);
    end if;
end $$;
