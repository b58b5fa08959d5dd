-- Let starts with a debounce time join the open bursts of their keys. A start begins a new burst if its key has no open burst, or
-- if the open burst has another version of the action. A new burst creates an execution that is due when the burst closes. Each
-- later start puts off that instant. The last start gives the parameters, labels, priority and origin, unless the burst keeps
-- those of the first start. A burst of 1,000 starts closes at once. The results are:
-- - `joined`: each start that joined, and its execution.
-- - `conflicts`: starts that differ from the open burst in options that are fixed by its first start (`c_fixed`).
-- Each start locks the row of its burst, so the starts of a key follow each other. The loop of the timers may start the execution
-- at the same time. Then the row of the execution decides: either the loop finds the instant changed, or the start finds it past.
-- planner: lookups
create or replace function join_starts(
    p_ids uuid[], p_namespaces integer[], p_definitions integer[], p_params text[], p_options text[], p_origins text[],
    p_priorities smallint[], out messages message[], out joined replaced_id[], out conflicts replaced_id[]
)
language plpgsql
as $$
declare
    c_fixed constant text[] := '{budget,when_spent,max_depth,max_descendants,timeouts}';
    c_most constant integer := 1000;
    v_burst start_burst%rowtype;
    v_row execution%rowtype;
    v_options jsonb;
    v_earlier uuid;
    v_now timestamptz;
    v_closes_at timestamptz;
    r record;
begin
    messages := '{}';
    joined := '{}';
    conflicts := '{}';
    for r in
        select d.*, d.options::jsonb as body, (d.options::jsonb #>> '{debounce,seconds}')::double precision as quiet,
            (d.options::jsonb #>> '{debounce,at_most}')::double precision as at_most, d.options::jsonb #>> '{debounce,keep}' as keep,
            coalesce(d.options::jsonb #>> '{debounce,key}', '') as key
        from unnest(p_ids, p_namespaces, p_definitions, p_params, p_options, p_origins, p_priorities) with ordinality
            as d (id, namespace_id, definition_id, params, options, origin, priority, place)
        where d.options like '%"debounce"%' and d.options::jsonb ? 'debounce'
        order by d.namespace_id, d.options::jsonb #>> '{debounce,key}', d.place
    loop
        insert into start_burst as b (namespace_id, key, execution_id, starts, first_at, closes_at)
        values (r.namespace_id, r.key, r.id, 0, clock_timestamp(), clock_timestamp())
        on conflict (namespace_id, key) do update set starts = b.starts
        returning * into v_burst;
        -- An earlier try of this start may have been committed, and its answer lost.
        select execution_id into v_earlier from joined_start where id = r.id;
        if found then
            joined := joined || (r.id, v_earlier)::replaced_id;
            continue;
        end if;
        continue when exists (select from execution where id = r.id);

        -- An execution that has begun is not locked, since the transaction that ends its attempt may wait for this row of the
        -- burst.
        select * into v_row from execution where id = v_burst.execution_id and status = 'requested' for no key update;
        v_now := clock_timestamp();
        if v_row.attempt = 0 and v_row.definition_id = r.definition_id
            and v_row.not_before = v_burst.closes_at and v_burst.closes_at > v_now
        then
            select options into v_options from payload where execution_id = v_row.id;
            if v_options #>> '{debounce,keep}' <> r.keep or exists (
                select from unnest(c_fixed) name where v_options -> name is distinct from r.body -> name)
            then
                conflicts := conflicts || (r.id, v_row.id)::replaced_id;
                continue;
            end if;
            v_closes_at := case when v_burst.starts + 1 >= c_most then v_now else
                greatest(v_now, least(v_now + make_interval(secs => r.quiet), v_burst.first_at + make_interval(secs => r.at_most))) end;
            if r.keep = 'last' then
                update payload set params = r.params::jsonb, options = r.body, origin = r.origin::jsonb
                where execution_id = v_row.id;
                delete from label where execution_id = v_row.id;
                perform label_executions(array[v_row.id], array[v_row.id], array[r.namespace_id], array[r.definition_id],
                    array[r.params], array[r.options], null);
            end if;
            -- The history gets the first place in line, and the last one when the execution leaves `requested`.
            perform set_config('penstock.moves', 'written', true);
            update execution set not_before = v_closes_at, ready_at = v_closes_at,
                priority = case r.keep when 'last' then coalesce(r.priority, 0) else priority end
            where id = v_row.id;
            perform set_config('penstock.moves', '', true);
            -- A timer that the loop is firing is locked, and is left alone. The loop finds the instant changed, and does nothing.
            delete from timer where ctid = any (array(
                select ctid from timer where execution_id = v_row.id and kind in ('ready', 'start') for update skip locked));
            insert into timer (due_at, kind, execution_id) values (v_closes_at, 'ready', v_row.id) on conflict do nothing;
            update timer set due_at = due_at + (v_closes_at - v_burst.closes_at) where ctid = any (array(
                select ctid from timer where execution_id = v_row.id and kind = 'total' for update skip locked));
            if v_row.timed then
                perform set_clocks(array[v_row.id]);
            end if;
            if v_closes_at < v_burst.closes_at then
                messages := messages || timers_set(v_closes_at);
            end if;
            update start_burst set starts = starts + 1, closes_at = v_closes_at
            where namespace_id = r.namespace_id and key = r.key;
            insert into joined_start (id, execution_id, at) values (r.id, v_row.id, v_now);
            joined := joined || (r.id, v_row.id)::replaced_id;
        else
            v_closes_at := v_now + make_interval(secs => least(r.quiet, r.at_most));
            update start_burst set execution_id = r.id, starts = 1, first_at = v_now, closes_at = v_closes_at
            where namespace_id = r.namespace_id and key = r.key;
            messages := messages || request_executions(array[r.id], array[r.namespace_id], array[r.definition_id],
                array[r.params], array[r.options], array[r.origin], array[r.priority], array[v_closes_at],
                null, null, null, false);
        end if;
    end loop;
end $$;
