-- Store the labels of the new executions `p_new`. The labels have four sources: the parent, the definition (`run_labels`), the
-- searchable parameters, and the options. If two labels have the same key, the later source in this order counts. A parameter
-- becomes a label if it is a text of 1 to 200 characters, a number or a boolean. An encrypted parameter does not.
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
    select distinct on (d.id, x.key) d.id, x.key, x.value, d.tenant, d.parent is not null
    from new d cross join lateral (
        select l.key, l.value, 0 as place from label l where l.execution_id = d.parent
        union all
        select key, value, 1 from jsonb_each_text(d.body -> 'run_labels')
        union all
        select s.name, d.params ->> s.name, 2 from jsonb_array_elements_text(d.body -> 'searchable') s (name)
        where jsonb_typeof(d.params -> s.name) in ('string', 'number', 'boolean')
            and length(d.params ->> s.name) between 1 and 200
        union all
        select key, value, 3 from jsonb_each_text(d.options -> 'labels')
    ) x
    order by d.id, x.key, x.place desc
    on conflict do nothing
$$;
