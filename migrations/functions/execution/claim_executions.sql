-- A worker takes as many of an envelope's executions as it has slots for: scheduled -> running, the attempt counted
-- now, so that a crash uses it up (I1). Only what is on this queue and whose definition the worker knows is taken.
-- `unknown` are definitions that the worker has not looked up yet: it does, and claims again. What else is left over goes
-- back on its route in the same transaction.
-- The guard on the status lets one worker win where two have the same message: the other one finds it running.
-- planner: lookups_planned_once
create or replace function claim_executions(
    p_worker uuid, p_claim uuid, p_ids uuid[], p_take integer, p_queue text, p_definitions integer[],
    p_lacking integer[], out claimed claimed_attempt[], out unknown integer[], out messages message[]
)
language plpgsql
as $$
begin
    claimed := '{}';
    unknown := '{}';
    messages := '{}';
    if p_take > 0 then
        with moved as (
            update execution e
            set status = 'running', attempt = e.attempt + 1, claim = p_worker
            from namespace n
            where e.id = any (p_ids[1:p_take]) and e.status = 'scheduled' and n.id = e.namespace_id
                and n.queue = p_queue and e.definition_id = any (p_definitions)
            returning e.id, e.attempt, e.failures, n.name, e.definition_id,
                extract(epoch from clock_timestamp() - e.ready_at)::float8 as waited
        ), held as (
            insert into claim (id, worker, executions)
            select p_claim, p_worker, array_agg(id) from moved having count(*) > 0
        )
        select coalesce(array_agg((m.id, m.attempt, m.failures, m.name, m.definition_id, m.waited,
            p.params::text, p.options::text)::claimed_attempt), '{}') into claimed
        from moved m join payload p on p.execution_id = m.id;
    end if;
    if cardinality(claimed) = cardinality(p_ids) then
        return;
    end if;

    unknown := array(
        select distinct e.definition_id
        from execution e join namespace n on n.id = e.namespace_id
        where e.id = any (p_ids[1:p_take]) and e.status = 'scheduled' and n.queue = p_queue
            and e.definition_id <> all (p_definitions) and e.definition_id <> all (p_lacking));
    messages := hand_back(p_ids, p_take, p_queue, p_lacking);
end $$;
