-- Record fires, start their executions, and set the next instants of their schedules. The caller holds the locks of the
-- schedules' rows. The arrays `p_refs`, `p_since`, `p_next` and `p_problems` describe schedules. A null in `p_since` leaves the
-- times of that schedule as they are. The arrays from `p_schedules` on describe fires, each with the status that it should have:
-- created, skipped or failed. The overlap policy may change created to queued or skipped. Raise `penstock.schedule.missed` for
-- fires that are skipped because they were missed. Return the number of recorded fires of each status.
-- planner: indexes_unmerged
create or replace function fire_schedules(
    p_refs text[], p_since timestamptz[], p_next timestamptz[], p_problems text[],
    p_schedules text[], p_dues timestamptz[], p_kinds text[], p_statuses text[], p_overlaps text[],
    p_definitions integer[], p_ids uuid[], p_namespaces integer[], p_actions integer[], p_not_before timestamptz[],
    p_params text[], p_options text[], p_origins text[], p_errors text[],
    out messages message[], out created integer, out queued integer, out skipped integer, out failed integer
)
language plpgsql
as $$
declare
    v_created uuid[];
    v_queued uuid[];
    v_missed_schedules text[];
    v_missed_dues timestamptz[];
begin
    if exists (select from unnest(p_kinds, p_statuses) d (kind, status) where d.kind = 'missed' and d.status = 'skipped')
        and is_asked('penstock.schedule.missed')
    then
        -- A fire that exists was recorded by another replica, before this transaction got the lock of its schedule.
        select array_agg(d.schedule), array_agg(d.due_at) into v_missed_schedules, v_missed_dues
        from unnest(p_schedules, p_dues, p_kinds, p_statuses) d (schedule, due_at, kind, status)
        where d.kind = 'missed' and d.status = 'skipped'
            and not exists (select from fire f where f.schedule = d.schedule and f.due_at = d.due_at);
    end if;
    if exists (select from unnest(p_overlaps) o where o <> 'allow') then
        select array_agg(d.status order by d.n), array_agg(d.error order by d.n) into p_statuses, p_errors
        from decide_overlaps(p_schedules, p_dues, p_kinds, p_statuses, p_overlaps, p_errors) d;
    end if;
    select r.created, r.queued, r.skipped, r.failed into v_created, v_queued, skipped, failed
    from record_fires(p_refs, p_since, p_next, p_problems, p_schedules, p_dues, p_kinds, p_statuses, p_definitions, p_ids,
        p_errors) r;
    created := cardinality(v_created);
    queued := cardinality(v_queued);
    if queued > 0 then
        perform queue_fires(v_queued, p_schedules, p_dues, p_overlaps, p_ids, p_namespaces, p_actions, p_not_before,
            p_params, p_options, p_origins);
    end if;

    messages := case when v_missed_dues is null then '{}' else raise_missed_fires(v_missed_schedules, v_missed_dues) end;
    if created = 0 then
        return;
    elsif created < cardinality(p_ids) then
        select array_agg(d.id), array_agg(d.namespace_id), array_agg(d.action_id), array_agg(d.params),
            array_agg(d.options), array_agg(d.origin), array_agg(d.not_before)
        into p_ids, p_namespaces, p_actions, p_params, p_options, p_origins, p_not_before
        from unnest(p_ids, p_namespaces, p_actions, p_params, p_options, p_origins, p_not_before)
            as d (id, namespace_id, action_id, params, options, origin, not_before)
        join unnest(v_created) as c (id) on c.id = d.id;
    end if;
    messages := messages || start_fires(p_ids, p_namespaces, p_actions, p_params, p_options, p_origins, p_not_before);
end $$;
