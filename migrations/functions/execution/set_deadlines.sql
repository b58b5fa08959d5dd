-- Timers of executions that are new, from the instant at which they are ready: until when they have to have started, and to
-- have ended, by their options or else by what their definition says. Most say nothing.
create or replace function set_deadlines(
    p_new uuid[], p_ids uuid[], p_definitions integer[], p_options text[], p_not_before timestamptz[]
) returns void
language plpgsql
as $$
begin
    if not exists (select from definition f where f.id = any (p_definitions)
                   and (f.body ? 'timeouts' or (f.kind = 'workflow' and f.body ? 'timeout')))
        and not exists (select from unnest(p_options) o where o like '%"timeouts"%') then
        return;
    end if;
    insert into timer (due_at, kind, execution_id)
    select greatest(clock_timestamp(), d.not_before) + make_interval(secs => t.seconds), t.kind, d.id
    from unnest(p_ids, p_definitions, p_options, p_not_before) as d (id, definition_id, options, not_before)
    join definition f on f.id = d.definition_id
    cross join lateral (values
        ('expire', coalesce((d.options::jsonb #>> '{timeouts,total}')::double precision,
            (f.body #>> '{timeouts,total}')::double precision,
            case when f.kind = 'workflow' then (f.body ->> 'timeout')::double precision end)),
        ('start', coalesce((d.options::jsonb #>> '{timeouts,schedule_to_start}')::double precision,
            (f.body #>> '{timeouts,schedule_to_start}')::double precision))
    ) t (kind, seconds)
    where t.seconds is not null and d.id = any (p_new)
    on conflict do nothing;
end $$;
