-- End attempts of a worker, and claim for it executions that these ends let start. A call of this function is the whole
-- transaction, in one round trip.
create or replace function finish_and_claim(
    p_worker uuid, p_ids uuid[], p_attempts integer[], p_statuses text[], p_results text[], p_errors text[],
    p_delays double precision[], p_untils timestamptz[], p_reasons text[], p_followed uuid[], p_claims uuid[],
    p_claim uuid, p_queues text[], p_known integer[], p_lacking integer[], p_limited executor_room[],
    out moved uuid[], out messages message[], out queue text, out claimed claimed_attempt[], out parked boolean
)
language plpgsql
as $$
begin
    perform claim_own_next(p_queues, cardinality(p_ids));
    select f.messages, f.moved into messages, moved
    from finish_attempts(p_worker, p_ids, p_attempts, p_statuses, p_results, p_errors, p_delays, p_untils, p_reasons,
        p_followed, p_claims) f;
    select c.messages, c.queue, c.claimed, c.parked into messages, queue, claimed, parked
    from claim_staged(messages, cardinality(p_ids), p_worker, p_claim, p_queues, p_known, p_lacking, p_limited) c;
end $$;
