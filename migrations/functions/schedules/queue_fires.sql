-- Queue the fires `p_queued`, which wait for the previous run of their schedule, with all values that their start needs. Under
-- the policy `replace`, only the newest fire of a schedule stays queued.
-- planner: indexes_unmerged
create or replace function queue_fires(
    p_queued uuid[], p_schedules text[], p_dues timestamptz[], p_overlaps text[], p_ids uuid[], p_namespaces integer[],
    p_actions integer[], p_not_before timestamptz[], p_params text[], p_options text[], p_origins text[]
) returns void
language plpgsql
as $$
begin
    insert into waiting_fire (schedule, due_at, execution_id, replaces, namespace_id, definition_id, not_before,
        params, options, origin)
    select d.schedule, d.due_at, d.id, d.overlap = 'replace', d.namespace_id, d.action_id, d.not_before,
        d.params::jsonb, d.options::jsonb, d.origin::jsonb
    from unnest(p_schedules, p_dues, p_ids, p_overlaps, p_namespaces, p_actions, p_not_before, p_params, p_options,
        p_origins)
        as d (schedule, due_at, id, overlap, namespace_id, action_id, not_before, params, options, origin)
    where d.id = any (p_queued);
    perform replace_waiting_fires(array(
        select distinct d.schedule from unnest(p_schedules, p_overlaps, p_ids) as d (schedule, overlap, id)
        where d.overlap = 'replace' and d.id = any (p_queued)));
end $$;
