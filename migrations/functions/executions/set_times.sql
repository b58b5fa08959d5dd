-- Set the timers of new executions, from the timeouts in their options or else in their definition. Return the instant of the
-- first timer, or null. `total` bounds the whole execution, from the instant at which it is ready. `late` comes from `warn_after`
-- (raise_late). `start` and `queued` bound the waits for a worker and for a limit. An execution with one of the last two is
-- marked `timed`. Most definitions have no timeouts, so a first query checks for any.
create or replace function set_times(
    p_new uuid[], p_ids uuid[], p_definitions integer[], p_options text[], p_not_before timestamptz[]
) returns timestamptz
language plpgsql
as $$
declare
    v_timed uuid[];
    v_first timestamptz;
begin
    if not exists (select from definition f where f.id = any (p_definitions)
                   and (f.body ?| '{timeouts,warn_after}' or (f.kind = 'workflow' and f.body ? 'timeout')))
        and not exists (select from unnest(p_options) o where o like '%"timeouts"%') then
        return null;
    end if;
    with made as (
        insert into timer (due_at, kind, execution_id)
        select greatest(clock_timestamp(), d.not_before) + make_interval(secs => t.seconds), t.kind, d.id
        from unnest(p_ids, p_definitions, p_options, p_not_before) as d (id, definition_id, options, not_before)
        join definition f on f.id = d.definition_id
        cross join lateral (values
            ('total', timeout_of(d.options::jsonb, f.body, 'total',
                case when f.kind = 'workflow' then (f.body ->> 'timeout')::double precision end)),
            ('late', (f.body ->> 'warn_after')::double precision)) t (kind, seconds)
        where t.seconds is not null and d.id = any (p_new)
        on conflict do nothing
        returning due_at
    )
    select min(due_at) into v_first from made;

    with bounded as (
        update execution e set timed = true
        from unnest(p_ids, p_definitions, p_options) as d (id, definition_id, options)
        join definition f on f.id = d.definition_id
        where e.id = any (p_new) and e.id = d.id and (timeout_of(d.options::jsonb, f.body, 'schedule_to_start', null) is not null
            or timeout_of(d.options::jsonb, f.body, 'queued', null) is not null)
        returning e.id
    )
    select array_agg(id) into v_timed from bounded;
    if v_timed is not null then
        perform set_clocks(v_timed);
        v_first := (select min(due_at) from timer where execution_id = any (v_timed));
    end if;
    return v_first;
end $$;
