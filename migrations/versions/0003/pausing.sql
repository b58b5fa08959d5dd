-- Workflows that are paused, a row each: who schedules their tasks looks here. Insert and delete only, mostly empty.
create table paused_workflow (
    execution_id uuid primary key
);

-- `not_before` of what is held until its workflow is resumed.
create function held_until() returns timestamptz
language sql immutable
as $$
    select timestamptz '9000-01-01 00:00:00+00'
$$;

-- Of these executions those that may be scheduled. Tasks of paused workflows are held: retries that are due, and whatever
-- else would start.
create function hold_paused(p_ids uuid[]) returns uuid[]
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
as $$
declare
    v_held uuid[];
begin
    v_held := array(select e.id from execution e join paused_workflow p on p.execution_id = e.parent where e.id = any (p_ids));
    if v_held = '{}' then
        return p_ids;
    end if;
    perform from execution where id = any (v_held) and status = 'requested' order by id for no key update;
    update execution set not_before = held_until(), reason = 'its workflow is paused'
    where id = any (v_held) and status = 'requested';
    return array(select x from unnest(p_ids) x where x <> all (v_held));
end $$;

-- Takes back what paused workflows asked for and no worker has begun: it is requested again, frees the slots that it had,
-- and keeps its place in line by the instant at which it became ready. Workflows inside them are paused too. The caller
-- holds the workflows' locks, in a later transaction than the one that wrote `paused_workflow` (which a resume meanwhile
-- may have undone): whoever schedules a task after that sees the row, and whoever was about to finds `not_before` changed.
create function hold_children(p_ids uuid[], p_reason text) returns setof staged
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
as $$
declare
    v_held uuid[];
    v_inside uuid;
begin
    insert into paused_workflow (execution_id) select unnest(p_ids) on conflict do nothing;
    perform from execution where parent = any (p_ids) and status in ('requested', 'queued', 'scheduled')
    order by id for no key update;
    with moved as (
        update execution e set status = 'requested', not_before = held_until(), reason = 'its workflow is paused'
        from namespace n
        where e.parent = any (p_ids) and n.id = e.namespace_id and (e.status in ('requested', 'queued', 'scheduled')
            -- a workflow that was told to start and has not begun
            or e.status = 'running' and n.queue = 'workflow.started'
                and not exists (select from workflow w where w.execution_id = e.id))
        returning e.id
    )
    select array_agg(id order by id) into v_held from moved;
    if v_held is not null then
        insert into live (execution_id) select unnest(v_held) on conflict do nothing;
        return query select * from leave_limits(v_held);
    end if;
    for v_inside in select w.execution_id from execution e join workflow w on w.execution_id = e.id
                    where e.parent = any (p_ids) and e.status = 'running' order by 1
    loop
        return query select * from command_workflow(v_inside, 'pause', null, null, 'the workflow around it', p_reason);
    end loop;
end $$;

-- Lets go of what was held: at once, or where a retry or a delay is not due yet, at its instant.
create function release_children(p_ids uuid[], p_reason text) returns setof staged
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
as $$
declare
    v_ready uuid[];
    v_inside uuid;
begin
    delete from paused_workflow where execution_id = any (p_ids);
    perform from execution where parent = any (p_ids) and status = 'requested' order by id for no key update;
    with moved as (
        update execution e set reason = null,
            not_before = (select min(t.due_at) from timer t where t.execution_id = e.id and t.kind = 'ready')
        where e.parent = any (p_ids) and e.status = 'requested' and e.not_before = held_until()
        returning e.id, e.not_before
    )
    select array_agg(id order by id) into v_ready from moved where not_before is null;
    if v_ready is not null then
        return query select * from stage('execution.requested', v_ready, 50);
    end if;
    for v_inside in select w.execution_id from execution e join workflow w on w.execution_id = e.id
                    where e.parent = any (p_ids) and e.status = 'running' order by 1
    loop
        return query select * from command_workflow(v_inside, 'resume', null, null, 'the workflow around it', p_reason);
    end loop;
end $$;
