-- Complete tasks for a worker, advance their workflows, and claim the next tasks. A call of this function is the whole
-- transaction, in one round trip. The worker has computed the advance from its remembered copy of the workflows. If the state has
-- changed, or another transaction holds the locks, `taken` is false, and nothing is done. A difference that is found later raises
-- PN003. The worker claims executions that this transaction creates on one of its queues (`p_queues`), at most as many as it
-- ends. A worker tries take_plain_step first for a step with one end and one start.
-- planner: lookups_planned_once
create or replace function take_steps(
    p_workflows uuid[], p_versions integer[], p_stops integer[],
    p_worker uuid, p_ended uuid[], p_attempts integer[], p_results text[], p_claims uuid[],
    p_heads text[], p_of uuid[], p_tasks integer[], p_failing boolean[], p_records text[],
    p_by uuid[], p_writers integer[], p_names text[], p_values text[],
    p_refs text[], p_current integer[], p_new uuid[], p_namespaces integer[], p_definitions integer[], p_params text[],
    p_options text[], p_origins text[], p_parents uuid[], p_new_tasks text[],
    p_final uuid[], p_statuses text[], p_outputs text[], p_errors text[], p_reasons text[],
    p_claim uuid, p_queues text[], p_known integer[], p_lacking integer[], p_limited executor_room[],
    out taken boolean, out messages message[], out queue text, out claimed claimed_attempt[], out parked boolean
)
language plpgsql
as $$
declare
    v_stale boolean;
begin
    messages := '{}';
    claimed := '{}';
    parked := false;
    taken := lock_remembered(p_workflows, p_versions, p_stops);
    if not taken then
        return;
    end if;
    perform claim_own_next(p_queues, cardinality(p_ended));
    perform complete_tasks(p_worker, p_ended, p_attempts, p_results, p_claims);
    perform write_workflows(p_workflows, p_heads, p_of, p_tasks, p_failing, p_records, p_by, p_writers, p_names, p_values);
    if p_new <> '{}' and cardinality(p_new) <= cardinality(p_ended) and p_limited = '{}' then
        select t.queue, t.claimed, t.messages into queue, claimed, messages
        from take_children(p_worker, p_claim, p_queues, p_known, p_refs, p_current, p_new, p_namespaces, p_definitions,
            p_params, p_options, p_origins, p_parents, p_new_tasks) t;
    end if;
    if p_new <> '{}' and queue is null then
        select s.messages, s.stale into messages, v_stale
        from start_children(p_refs, p_current, p_new, p_namespaces, p_definitions, p_params, p_options, p_origins, null,
            p_parents, p_new_tasks, null) s;
        if v_stale then
            raise exception 'a definition is not as it was remembered' using errcode = 'PN003';
        end if;
    end if;
    if p_final <> '{}' then
        messages := messages || finish_workflows(p_final, p_statuses, p_outputs, p_errors, p_reasons);
    end if;
    if queue is not null then
        return;
    end if;
    select c.messages, c.queue, c.claimed, c.parked into messages, queue, claimed, parked
    from claim_staged(messages, cardinality(p_ended), p_worker, p_claim, p_queues, p_known, p_lacking, p_limited) c;
end $$;
