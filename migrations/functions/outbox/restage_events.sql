-- Stage messages again for events that no process has matched with rules for `p_age`, because the messages were lost. One call of
-- this function handles at most `p_limit` events. An event with a row in the outbox is left out.
create or replace function restage_events(p_age interval, p_limit integer) returns message[]
language plpgsql
as $$
declare
    v_lost uuid[];
begin
    with found as (
        select u.event_id from unmatched u
        where u.since < clock_timestamp() - p_age
            and not exists (select from outbox o where o.queue = 'event.created' and u.event_id = any (o.ids))
        order by u.event_id limit p_limit for update skip locked
    ), again as (
        update unmatched u set since = clock_timestamp() from found f where u.event_id = f.event_id returning u.event_id
    )
    select array_agg(event_id order by event_id) into v_lost from again;
    return stage('event.created', v_lost, 50);
end $$;
