-- A worker takes as many of an envelope's executions as it has slots for: scheduled -> running, the attempt counted
-- now, so that a crash uses it up (I1). Only what is on this queue and whose definition the worker knows is taken.
-- What is left over goes back on its route in the same transaction: at once where there was no slot, later where the
-- worker lacks the action (it never fails work for that), so that another worker can have it.
-- planner: lookups_planned_once
create or replace function claim_executions(
    p_worker uuid, p_claim uuid, p_ids uuid[], p_take integer, p_queue text, p_definitions integer[],
    p_lacking integer[]
) returns table (
    execution_id uuid, attempt smallint, failures smallint, namespace text, definition_id integer, waited double precision,
    params text, options text, outbox_id bigint, queue text, ids uuid[]
)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_count integer := 0;
    v_unknown integer[];
    v_queue text;
    v_size integer;
    v_ids uuid[];
begin
    if p_take > 0 then
        return query
        with moved as (
            update execution e
            set status = 'running', attempt = e.attempt + 1, claim = p_worker
            from namespace n
            where e.id = any (p_ids[1:p_take]) and e.status = 'scheduled' and n.id = e.namespace_id
                and n.queue = p_queue and e.definition_id = any (p_definitions)
            returning e.id, e.attempt, e.failures, n.name, e.definition_id,
                extract(epoch from clock_timestamp() - e.ready_at)::float8 as waited
        ), held as (
            insert into claim (id, worker, executions)
            select p_claim, p_worker, array_agg(id) from moved having count(*) > 0
        )
        select m.id, m.attempt, m.failures, m.name, m.definition_id, m.waited,
            p.params::text, p.options::text, null::bigint, null::text, null::uuid[]
        from moved m join payload p on p.execution_id = m.id;
        get diagnostics v_count = row_count;
    end if;
    if v_count = cardinality(p_ids) then
        return;
    end if;

    -- Definitions that the worker has not looked up yet: it does, and claims again.
    select array_agg(distinct e.definition_id) into v_unknown
    from execution e join namespace n on n.id = e.namespace_id
    where e.id = any (p_ids[1:p_take]) and e.status = 'scheduled' and n.queue = p_queue
        and e.definition_id <> all (p_definitions) and e.definition_id <> all (p_lacking);
    if v_unknown is not null then
        return query select null::uuid, null::smallint, null::smallint, null::text, d, null::float8, null::text, null::text, null::bigint, null::text, null::uuid[]
        from unnest(v_unknown) d;
    end if;

    for v_queue, v_size, v_ids in
        select n.queue, n.envelope, array_agg(e.id order by e.id)
        from execution e join namespace n on n.id = e.namespace_id
        where e.id = any (p_ids[p_take + 1:]) and e.status = 'scheduled'
            and e.definition_id <> all (p_lacking)
        group by n.queue, n.envelope
    loop
        return query select null::uuid, null::smallint, null::smallint, null::text, null::integer, null::float8, null::text, null::text, s.*
        from stage(v_queue, v_ids, v_size) s;
    end loop;

    insert into outbox (queue, ids, due_at, error)
    select n.queue, array_agg(e.id order by e.id), clock_timestamp() + interval '5 seconds',
        'no live worker of this route has the action'
    from execution e join namespace n on n.id = e.namespace_id
    where e.id = any (p_ids) and e.status = 'scheduled'
        and (e.definition_id = any (p_lacking) or (n.queue <> p_queue and e.id = any (p_ids[1:p_take])))
    group by n.queue, e.definition_id;
end $$;
