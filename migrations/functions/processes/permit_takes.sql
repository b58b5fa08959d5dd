-- Place a permit for each of these takes on its queue. A take is a worker's request that waits at the gateway `p_holder`. Return
-- for each take whether a permit with its claim id exists now. The parameters are:
-- - `p_lock`, `p_channel`: the lock of the gateway's session, and its channel.
-- - `p_actors`: the names of the workers for the history.
-- - `p_definitions`: the definitions that each worker may get, as the text of an array.
-- - `p_new`: whether the take is new. Another take can only renew its permit. If that permit is gone, a submit may have taken it,
--   and a new permit could lead to a second assignment.
-- - `p_behind`: no permit is placed on a queue with a message in the outbox.
-- An older permit of the same worker on the same queue is replaced. If a submit has locked the older permit, it stays, and none
-- is placed. The function has the owner's rights, since an API that is not a gateway needs no right to permits.
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
        -- A permit that a submit has locked is still visible. This call does not wait for it.
        and not exists (select from permit p where p.worker = t.worker and p.queue = t.queue and p.claim is not null)
        and not (p_behind and exists (select from outbox o where o.queue = t.queue and o.due_at <= clock_timestamp()))
    order by t.place
    on conflict (worker, queue) where claim is not null do nothing;
    return array(
        select exists (select from permit p where p.worker = t.worker and p.queue = t.queue and p.claim = t.claim)
        from unnest(p_workers, p_queues, p_claims) with ordinality t (worker, queue, claim, place) order by t.place);
end $$;
