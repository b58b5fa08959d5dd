-- Write the history of new executions, announce their statuses, and record them for subscriptions. An execution that was created
-- as started also gets the move to requested. One that was created as running also gets the move to scheduled.
-- Some functions write the history themselves, and set `penstock.moves` for their transaction. The trigger then does nothing. Any
-- session can set that, so the trigger accepts it only in functions with the owner's rights. The trigger recognizes these
-- functions by the right to truncate the table, which no service has. This function has the owner's rights, so that no service
-- needs the right to insert history.
create or replace function execution_inserted() returns trigger
language plpgsql security definer
as $$
declare
    v_actor text := current_setting('application_name');
    v_ids uuid[];
    v_statuses text[];
begin
    insert into history (execution_id, at, old, new, attempt, actor, reason, ready_at)
    select id, clock_timestamp(), null, 'requested', 0, v_actor, reason, ready_at from new_rows
    union all
    select id, clock_timestamp() + interval '1 microsecond', 'requested', case when attempt > 0 then 'scheduled' else status end, 0,
        v_actor, reason, null
    from new_rows where status <> 'requested'
    union all
    select id, clock_timestamp() + interval '2 microseconds', 'scheduled', status, attempt, v_actor, reason, null
    from new_rows where attempt > 0;
    if not exists (select from cluster where announced <> '{}' or subscribed <> '{}') then
        return null;
    end if;
    select array_agg(r.id), array_agg(m.status) into v_ids, v_statuses
    from new_rows r
    cross join lateral (values
        ('requested', true),
        (case when r.attempt > 0 then 'scheduled' else r.status end, r.status <> 'requested'),
        (r.status, r.attempt > 0)
    ) m (status, was_reached)
    where m.was_reached;
    perform announce_moves(v_ids, v_statuses);
    insert into subscribed_move (execution_id, status, attempt, namespace_id, parent, reason)
    select r.id, m.status, case m.status when 'running' then r.attempt else 0 end, r.namespace_id, r.parent, r.reason
    from unnest(v_ids, v_statuses) m (id, status) join new_rows r on r.id = m.id
    where m.status = any (array(select unnest(subscribed) from cluster));
    return null;
end $$;

create or replace trigger execution_inserted after insert on execution
referencing new table as new_rows
for each statement when (current_setting('penstock.moves', true) is distinct from 'written'
    or not has_table_privilege('execution'::regclass, 'truncate')) execute function execution_inserted();
