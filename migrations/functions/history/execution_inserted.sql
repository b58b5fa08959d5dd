-- The history of an execution begins with its row. One that was born started was requested in that instant, and one that was born
-- in the hands of a worker was scheduled too.
create or replace function execution_inserted() returns trigger
language plpgsql
as $$
declare
    v_ids uuid[];
    v_statuses text[];
begin
    with written as (
        insert into history (execution_id, at, old, new, attempt, actor, reason, ready_at)
        select r.id, clock_timestamp() + m.later, m.was, m.becomes, m.attempt, current_setting('application_name'), r.reason,
            case when m.was is null then r.ready_at end
        from new_rows r
        cross join lateral (values
            (null, 'requested', 0, interval '0'),
            ('requested', case when r.attempt > 0 then 'scheduled' else r.status end, 0, interval '1 microsecond'),
            ('scheduled', case when r.attempt > 0 then r.status else 'scheduled' end, r.attempt, interval '2 microseconds')
        ) m (was, becomes, attempt, later)
        where m.was is distinct from m.becomes
        returning execution_id, history.new as status
    )
    select array_agg(execution_id), array_agg(status) into v_ids, v_statuses from written
    where exists (select from cluster where announced <> '{}' or subscribed <> '{}');
    if v_ids is null then
        return null;
    end if;
    perform announce_moves(v_ids, v_statuses);
    insert into subscribed_move (execution_id, status, attempt, namespace_id, parent, reason)
    select r.id, m.status, case m.status when 'running' then r.attempt else 0 end, r.namespace_id, r.parent, r.reason
    from unnest(v_ids, v_statuses) m (id, status) join new_rows r on r.id = m.id
    where m.status = any (array(select unnest(subscribed) from cluster));
    return null;
end $$;

create or replace trigger execution_inserted after insert on execution
referencing new table as new_rows
for each statement execute function execution_inserted();
