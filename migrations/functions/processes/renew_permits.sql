-- Replace the permits of a worker on one of its queues, so that they are valid from now on. `p_expected` is the number of permits
-- that the worker knows. Permits that are missing at this call were taken by submits, and their notifications are on the way. So
-- the function places `p_most` new permits, minus the missing ones. Only an active worker gets permits. With `p_behind`, none are
-- placed while a message of the queue waits in the outbox. `withdrawn` is the number of deleted permits, and `placed` the number
-- of new ones.
-- planner: indexes_planned_once
create or replace function renew_permits(
    p_worker uuid, p_queue text, p_channel text, p_definitions integer[], p_expected integer, p_most integer, p_behind boolean,
    out withdrawn integer, out placed integer
)
language plpgsql
as $$
begin
    -- A submit that has locked a permit takes it, or rolls back. After a rollback, the next renewal deletes the permit.
    with gone as (
        delete from permit where ctid = any (array(
            select ctid from permit where worker = p_worker and queue = p_queue for update skip locked))
        returning 1
    )
    select count(*) into withdrawn from gone;
    with fresh as (
        insert into permit (worker, queue, channel, actor, definitions)
        select p_worker, p_queue, p_channel, current_setting('application_name'), p_definitions
        from generate_series(1, p_most - greatest(0, p_expected - withdrawn))
        where exists (select from process where id = p_worker and state = 'active')
            and not (p_behind and exists (select from outbox where queue = p_queue and due_at <= clock_timestamp()))
        returning 1
    )
    select count(*) into placed from fresh;
end $$;
