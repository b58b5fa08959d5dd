-- Record which rules matched which events, once for each pair (I7), and create an execution for each match. An enforcement is
-- written as executed, since its execution is created in the same transaction. It is written as failed if its parameters could
-- not be rendered (`p_errors`), or if its chain is full. Messages name an enforcement by the id of its execution. The messages
-- are staged only if `enforcement.created` is announced.
create or replace function enforce_rules(
    p_ids uuid[], p_events uuid[], p_rules text[], p_definitions integer[], p_namespaces integer[],
    p_action_definitions integer[], p_priorities smallint[], p_params text[], p_options text[], p_errors text[]
) returns message[]
language plpgsql
as $$
declare
    v_made uuid[];
    v_new uuid[];
    v_messages message[] := '{}';
begin
    p_errors := cut_chains(p_ids, p_events, p_rules, p_options, p_errors, false);
    with made as (
        insert into enforcement (event_id, rule, definition_id, execution_id, status, namespace_id,
            action_definition_id, priority, params, options, error)
        select d.event_id, d.rule, d.definition_id, d.id, case when d.error is null then 'executed' else 'failed' end,
            d.namespace_id, d.action_definition_id, coalesce(d.priority, 0), d.params::jsonb, d.options::jsonb, d.error
        from unnest(p_ids, p_events, p_rules, p_definitions, p_namespaces, p_action_definitions, p_priorities, p_params,
            p_options, p_errors)
            as d (id, event_id, rule, definition_id, namespace_id, action_definition_id, priority, params, options, error)
        order by d.event_id, d.rule
        on conflict do nothing
        returning execution_id, status
    )
    select array_agg(execution_id), array_agg(execution_id) filter (where status = 'executed') into v_made, v_new from made;
    if cardinality(v_made) is distinct from cardinality(p_ids) then
        -- Another delivery of the event has enforced it, and has begun its chains. Delete what cut_chains wrote for this
        -- delivery.
        delete from chain where id = any (p_ids) and id <> all (coalesce(v_made, '{}'));
        delete from chain_step where id = any (p_ids) and id <> all (coalesce(v_made, '{}'));
    end if;
    if v_made is not null and exists (select from cluster where 'enforcement.created' = any (announced)) then
        v_messages := stage('enforcement.created', v_made, 150);
    end if;
    if v_new is null then
        return v_messages;
    end if;
    return v_messages || start_enforced(v_new);
end $$;
