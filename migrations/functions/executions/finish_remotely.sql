-- End attempts of a worker that calls a gateway, as finish_attempts does for other workers. Also delete its claims that have no
-- other open attempt. The history names `p_actor`. `p_plain` is true if all attempts have completed and neither a workflow nor an
-- action follows.
-- `moved` are the executions that this call has moved. `repeated` are executions with an attempt that the worker had ended
-- before, since a worker without an answer sends its ends again. If an execution is in neither array, the worker has lost the
-- attempt.
-- planner: lookups
create or replace function finish_remotely(
    p_actor text, p_plain boolean, p_worker uuid, p_ids uuid[], p_attempts integer[], p_statuses text[], p_results text[],
    p_errors text[], p_delays double precision[], p_untils timestamptz[], p_reasons text[], p_followed uuid[],
    out messages message[], out moved uuid[], out repeated uuid[]
)
language plpgsql
as $$
begin
    perform set_config('application_name', p_actor, true);
    if p_plain then
        select f.messages, f.moved into messages, moved
        from finish_completed(p_worker, p_ids, p_attempts, p_results, '{}') f;
    else
        select f.messages, f.moved into messages, moved
        from finish_attempts(p_worker, p_ids, p_attempts, p_statuses, p_results, p_errors, p_delays, p_untils, p_reasons,
            p_followed, '{}') f;
    end if;
    -- Another call of this function may end the other attempts of a claim at this moment. The call that locks the row of the claim
    -- last sees the ends of both, and deletes the row.
    perform from claim where worker = p_worker and executions && moved order by id for update;
    delete from claim c
    where c.worker = p_worker and c.executions && moved and not exists (
        select from unnest(c.executions) x join execution e on e.id = x
        where e.claim = p_worker and e.status in ('running', 'canceling'));
    repeated := array(
        select d.id from unnest(p_ids, p_attempts) d (id, attempt)
        where d.id <> all (moved) and (
            exists (select from execution e where e.id = d.id and e.attempt = d.attempt and e.claim = p_worker and e.finished_at is not null)
            or exists (select from attempt a where a.execution_id = d.id and a.attempt = d.attempt and a.worker = p_actor)));
end $$;
