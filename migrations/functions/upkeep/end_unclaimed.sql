-- End executions that no worker has claimed within `p_seconds` after they became scheduled. The timeout `schedule_to_start` of an
-- execution or its action replaces that time. A call of this function checks the next `p_limit` open executions after `p_after`.
-- `next` is the id to continue after, or null at the end.
-- planner: lookups
create or replace function end_unclaimed(
    p_seconds double precision, p_after uuid, p_limit integer, out messages message[], out next uuid
)
language plpgsql
as $$
declare
    v_ids uuid[];
begin
    messages := '{}';
    v_ids := array(select execution_id from live where execution_id > p_after order by execution_id limit p_limit);
    if v_ids = '{}' then
        return;
    end if;
    next := v_ids[cardinality(v_ids)];
    v_ids := array(
        select e.id from execution e
        join definition d on d.id = e.definition_id
        left join payload p on p.execution_id = e.id
        where e.id = any (v_ids) and e.status = 'scheduled'
            and coalesce(e.since, e.ready_at) < clock_timestamp() - make_interval(
                secs => timeout_of(p.options, d.body, 'schedule_to_start', p_seconds))
        order by e.id for no key update of e skip locked);
    messages := (end_executions(v_ids, array['scheduled'], 'timeout', 'no worker started it in time', null)).messages;
end $$;
