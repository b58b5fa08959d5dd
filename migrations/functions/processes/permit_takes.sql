-- Place a permit for each of these takes, which wait at the gateway `p_holder`, on one queue each. `p_lock` is the lock of its session,
-- and `p_channel` is where it is notified. `p_actors` are the workers' names for the history, and `p_definitions` what each may be
-- assigned, as text of an array. A permit of the same worker on the same queue is replaced. If a submit has locked it, it stays, and
-- none is placed. One that is not new (`p_new`) is only renewed: if it is gone, a submit may have taken it, and a second assignment would
-- be too many. With `p_behind`, none are placed on a queue of which a message waits in the outbox. The result says for each take
-- whether a permit with its claim id is out now.
-- The function has the owner's rights: an API that is no gateway has no use for permits.
-- planner: indexes
create or replace function permit_takes(
    p_holder uuid, p_lock bigint, p_channel text, p_queues text[], p_workers uuid[], p_claims uuid[], p_actors text[],
    p_definitions text[], p_new boolean[], p_behind boolean
) returns boolean[]
language plpgsql security definer
as $$
declare
    v_renewed boolean[];
begin
    with gone as (
        delete from permit where ctid = any (array(
            select p.ctid from unnest(p_workers, p_queues) t (worker, queue)
            join permit p on p.worker = t.worker and p.queue = t.queue and p.claim is not null
            for update of p skip locked))
        returning worker, queue, claim
    )
    select array_agg(g.claim is not null order by t.place) into v_renewed
    from unnest(p_workers, p_queues, p_claims) with ordinality t (worker, queue, claim, place)
    left join gone g on g.worker = t.worker and g.queue = t.queue and g.claim = t.claim;
    insert into permit (worker, queue, channel, actor, definitions, claim, lock_key, holder)
    select t.worker, t.queue, p_channel, t.actor, t.definitions::integer[], t.claim, p_lock, p_holder
    from unnest(p_workers, p_queues, p_claims, p_actors, p_definitions, p_new, v_renewed) with ordinality
        t (worker, queue, claim, actor, definitions, is_new, is_renewed, place)
    where (t.is_new or t.is_renewed) and exists (select from process w where w.id = t.worker and w.state = 'active')
        -- A permit that a submit has locked is not waited for.
        and not exists (select from permit p where p.worker = t.worker and p.queue = t.queue and p.claim is not null)
        and not (p_behind and exists (select from outbox o where o.queue = t.queue and o.due_at <= clock_timestamp()))
    order by t.place
    on conflict (worker, queue) where claim is not null do nothing;
    return array(
        select exists (select from permit p where p.worker = t.worker and p.queue = t.queue and p.claim = t.claim)
        from unnest(p_workers, p_queues, p_claims) with ordinality t (worker, queue, claim, place) order by t.place);
end $$;
