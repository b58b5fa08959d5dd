-- Delete the permits of a take. `withdrawn` are the queues of those that were deleted, and `locked` the queues of those that a submit has
-- locked: it may take them or roll back. Others are gone: what was assigned is found by the claim id of the take.
-- planner: indexes
create or replace function withdraw_take(p_worker uuid, p_claim uuid, out withdrawn text[], out locked text[])
language plpgsql security definer
as $$
begin
    with gone as (
        delete from permit where ctid = any (array(
            select ctid from permit where worker = p_worker and claim = p_claim for update skip locked))
        returning queue
    )
    select coalesce(array_agg(queue), '{}') into withdrawn from gone;
    locked := array(select queue from permit where worker = p_worker and claim = p_claim);
end $$;
