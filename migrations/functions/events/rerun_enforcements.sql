-- Store new results of rules for events on which these rules had failed. A rule that matches now starts its execution, with its
-- id in `p_ids`, unless its chain is full. `started` are these executions. A rule that fails again gets its new error. If a rule
-- does not match, its enforcement is deleted. An enforcement that another transaction has settled meanwhile is no longer failed,
-- and is left alone (I7).
create or replace function rerun_enforcements(
    p_events uuid[], p_rules text[], p_matched boolean[], p_ids uuid[], p_definitions integer[], p_namespaces integer[],
    p_action_definitions integer[], p_priorities smallint[], p_params text[], p_options text[], p_errors text[],
    out messages message[], out started uuid[]
)
language plpgsql
as $$
declare
    v_changed uuid[];
begin
    perform from enforcement e
    where (e.event_id, e.rule) in (select * from unnest(p_events, p_rules)) and e.error is not null
    order by e.event_id, e.rule for no key update;

    delete from enforcement e using unnest(p_events, p_rules, p_matched) as d (event_id, rule, matched)
    where (e.event_id, e.rule) = (d.event_id, d.rule) and e.error is not null and not d.matched;

    p_errors := cut_chains(p_ids, p_events, p_rules, p_options, p_errors, true);
    with changed as (
        update enforcement e set execution_id = d.id, definition_id = d.definition_id, namespace_id = d.namespace_id,
            action_definition_id = d.action_definition_id, priority = coalesce(d.priority, 0), params = d.params::jsonb,
            options = d.options::jsonb, error = d.error,
            status = case when d.error is null then 'created' else 'failed' end
        from unnest(p_events, p_rules, p_matched, p_ids, p_definitions, p_namespaces, p_action_definitions, p_priorities,
            p_params, p_options, p_errors)
            as d (event_id, rule, matched, id, definition_id, namespace_id, action_definition_id, priority, params, options,
                error)
        where (e.event_id, e.rule) = (d.event_id, d.rule) and e.error is not null and d.matched
        returning e.execution_id, e.error
    )
    select coalesce(array_agg(execution_id) filter (where error is null), '{}'), array_agg(execution_id)
    into started, v_changed from changed;
    messages := '{}';
    if v_changed is not null and exists (select from cluster where 'enforcement.created' = any (announced)) then
        messages := stage('enforcement.created', v_changed, 150);
    end if;
    if started <> '{}' then
        messages := messages || execute_enforcements(started);
    end if;
end $$;
