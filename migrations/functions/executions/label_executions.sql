-- Store the labels of the new executions `p_new` (merge_labels).
-- planner: indexes_planned_once
create or replace function label_executions(
    p_new uuid[], p_ids uuid[], p_namespaces integer[], p_definitions integer[], p_params text[], p_options text[], p_parents uuid[]
) returns void
language sql
as $$
    with new as materialized (
        select d.id, d.parent, split_part(n.name, '::', 1) as tenant, d.params::jsonb as params, d.options::jsonb as options, f.body
        from unnest(p_ids, p_namespaces, p_definitions, p_params, p_options, p_parents)
            as d (id, namespace_id, definition_id, params, options, parent)
        join namespace n on n.id = d.namespace_id
        join definition f on f.id = d.definition_id
        where d.id = any (p_new)
    )
    insert into label (execution_id, key, value, tenant, child)
    select d.id, x.key, x.value, d.tenant, d.parent is not null
    from new d cross join lateral merge_labels(d.parent, d.body, d.params, d.options) x
    order by d.id, x.key
    on conflict do nothing
$$;
