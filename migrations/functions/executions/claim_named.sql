-- Claim at most `p_take` of the executions `p_ids` for a worker: scheduled -> running. The attempt is counted now, so a crash
-- uses it up (I1). These are claimed:
-- - Executions on this queue, of definitions that the worker knows (`p_definitions`).
-- - Of the definitions in `p_limited`, only as many as their task executor has room for, which is less than the worker has slots.
-- - None that is held, that has expired, or that a breaker blocks.
-- `unknown` are definitions that the worker neither knows nor lacks (`p_lacking`). The worker looks them up, and claims again. In
-- the same transaction, the other executions return to their route, or are parked (`parked` is true).
-- If two workers have the same message, the status lets only one of them claim: the other finds the execution running. If the
-- answer to a take at a gateway was lost, it is repeated with the same `p_claim`, and may add further executions. A worker with
-- its own connections repeats a claim with another `p_claim`.
-- The function writes the history itself, and tells the triggers so by the setting `penstock.moves`. The triggers accept it only
-- from the owner, so the function has the owner's rights.
-- planner: lookups_planned_once
create or replace function claim_named(
    p_worker uuid, p_claim uuid, p_ids uuid[], p_take integer, p_queue text, p_definitions integer[],
    p_lacking integer[], p_limited executor_room[] default '{}',
    out claimed claimed_attempt[], out unknown integer[], out messages message[], out parked boolean
)
language plpgsql security definer
as $$
declare
    v_tried uuid[] := p_ids[1:p_take];
    v_full uuid[] := '{}';
    v_writes boolean;
begin
    claimed := '{}';
    unknown := '{}';
    messages := '{}';
    parked := false;
    -- The session may have set `penstock.moves`. The triggers would believe it, since this function has the owner's rights.
    perform set_config('penstock.moves', '', true);
    if cardinality(p_limited) > 0 then
        select c.fitting, c.full_up into v_tried, v_full from choose_for_executors(p_ids, p_take, p_limited) c;
    end if;
    if v_tried <> '{}' then
        -- If moves are announced or subscribed to, the trigger writes them. Otherwise this statement does.
        v_writes := not exists (select from cluster where announced <> '{}' or subscribed <> '{}');
        if v_writes then
            perform set_config('penstock.moves', 'written', true);
        end if;
        with moved as (
            update execution e
            set status = 'running', attempt = e.attempt + 1, claim = p_worker
            from namespace n
            where e.id = any (v_tried) and e.status = 'scheduled' and n.id = e.namespace_id
                and n.queue = p_queue and e.definition_id = any (p_definitions)
                and n.hold is distinct from 'held'
                and case when e.keys is null then true else not is_blocked(e.id, e.keys) end
                and case when e.timed and e.attempt = 0 then not exists (
                    select from timer t where t.execution_id = e.id and t.kind = 'expires' and t.due_at <= clock_timestamp())
                    else true end
            returning e.id, e.attempt, e.failures, n.name, e.definition_id, e.parent, e.task, e.reason,
                extract(epoch from clock_timestamp() - e.ready_at)::float8 as waited
        ), moves as (
            insert into history (execution_id, at, old, new, attempt, actor, reason)
            select id, clock_timestamp(), 'scheduled', 'running', attempt, current_setting('application_name'), reason from moved where v_writes
        ), held as (
            insert into claim (id, worker, executions)
            select p_claim, p_worker, array_agg(id) from moved having count(*) > 0
            on conflict (id) do update set executions = claim.executions || excluded.executions
        )
        select coalesce(array_agg((m.id, m.attempt, m.failures, m.name, m.definition_id, m.waited,
            p.params::text, p.options::text, case when m.attempt > 1 then carried_over(m.id) end,
            m.parent, case when m.parent is not null then root_of(m.parent) end, m.task,
            (p.origin -> 'trace')::text)::claimed_attempt), '{}')
        into claimed
        from moved m join payload p on p.execution_id = m.id;
        perform set_config('penstock.moves', '', true);
    end if;
    if cardinality(claimed) = cardinality(p_ids) then
        return;
    end if;

    unknown := array(
        select distinct e.definition_id
        from execution e join namespace n on n.id = e.namespace_id
        where e.id = any (v_tried) and e.status = 'scheduled' and n.queue = p_queue
            and e.definition_id <> all (p_definitions) and e.definition_id <> all (p_lacking));
    messages := hand_back(p_ids, v_tried || v_full, p_queue, p_lacking);
    parked := park_executions(p_worker, p_ids, v_full, p_queue, p_lacking, p_limited);
end $$;
