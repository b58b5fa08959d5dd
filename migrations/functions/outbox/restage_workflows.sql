-- Stage the messages of workflows again after the broker lost them. A workflow gets one if it has run for longer than `p_age`,
-- and one of these holds: It has not begun. A command or a request to stop was not handled. A task is due. Or it has no open
-- child, so that nothing else would advance it. No known fault leads to that last state. A paused workflow gets none for its
-- tasks. Instants that are to come count as in restage_lost. The function goes through the open executions in the same steps as restage_lost.
-- planner: indexes
create or replace function restage_workflows(p_age interval, p_after uuid, p_limit integer) returns message[]
language plpgsql
as $$
declare
    v_ids constant uuid[] := (select ids from walk_open(p_after, p_limit));
    v_stuck uuid[];
begin
    select array_agg(e.id order by e.id) into v_stuck
    from execution e
    join namespace n on n.id = e.namespace_id
    left join workflow w on w.execution_id = e.id
    where e.id = any (v_ids) and e.status = 'running' and n.kind = 'workflow'
        and coalesce(e.since, e.ready_at) not between clock_timestamp() - p_age and clock_timestamp() + interval '1 second'
        and (w.head is null or w.stops > (w.head ->> 'stops')::integer
            or exists (select from workflow_command c where c.execution_id = e.id and c.obeyed_at is null
                       and c.created_at not between clock_timestamp() - p_age and clock_timestamp() + interval '1 second')
            or not (w.head ->> 'paused')::boolean and (
                w.head -> 'due' <> '[]'
                or not exists (select from execution c where c.parent = e.id
                               and (c.finished_at is null or c.finished_at between clock_timestamp() - p_age
                                    and clock_timestamp() + interval '1 second'))))
        and not exists (select from outbox o where o.queue = 'workflow.started' and e.id = any (o.ids));
    return stage('workflow.started', mark_restaged(v_stuck, p_age), 20);
end $$;
