-- Delete the permits of a take. `withdrawn` are the queues of the deleted permits. `locked` are the queues of permits that a
-- submit has locked, and may still take. All other permits were taken: their executions have a claim with the claim id of the
-- take.
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
