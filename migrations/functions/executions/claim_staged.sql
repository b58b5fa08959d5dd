-- Claim new work for a worker, in the transaction that reports its finished work. `p_staged` are the messages that this
-- transaction staged. The worker claims envelopes among them that are on one of its queues, with at most `p_most` executions
-- together. `messages` are the remaining messages, and those that the claim staged. An envelope that was claimed as a whole is
-- deleted, so no other worker gets it. `queue` is null if nothing was staged on these queues.
create or replace function claim_staged(
    p_staged message[], p_most integer, p_worker uuid, p_claim uuid, p_queues text[], p_known integer[],
    p_lacking integer[], p_limited executor_room[],
    out messages message[], out queue text, out claimed claimed_attempt[], out parked boolean
)
language plpgsql
as $$
declare
    v_offers bigint[];
    v_ids uuid[];
    v_left message[];
begin
    messages := p_staged;
    claimed := '{}';
    parked := false;
    select m.queue into queue from unnest(p_staged) m
    where m.queue = any (p_queues) and cardinality(m.ids) <= p_most limit 1;
    if queue is null then
        return;
    end if;
    v_offers := array(
        select x.id from (
            select m.id, sum(cardinality(m.ids)) over (order by m.place) as together
            from unnest(p_staged) with ordinality as m (id, queue, ids, place)
            where m.queue = claim_staged.queue and cardinality(m.ids) <= p_most) x
        where x.together <= p_most);
    v_ids := array(select i from unnest(p_staged) m cross join lateral unnest(m.ids) i where m.outbox_id = any (v_offers));
    select c.claimed, c.messages, c.parked into claimed, v_left, parked
    from claim_executions(p_worker, p_claim, v_ids, cardinality(v_ids), queue, p_known, p_lacking, p_limited) c;
    if cardinality(claimed) = cardinality(v_ids) then
        delete from outbox where id = any (v_offers);
        messages := array(select m from unnest(p_staged) m where m.outbox_id <> all (v_offers));
    end if;
    messages := messages || v_left;
end $$;
