-- Return the labels of an execution as an object. Without `p_definition` the execution is stored, and so are its labels. With it
-- the execution is about to be created, and the function merges the labels that label_executions will store.
create or replace function labels_of(p_id uuid, p_parent uuid, p_params jsonb, p_definition integer, p_options text) returns jsonb
language plpgsql stable
as $$
begin
    if p_definition is null then
        return (select jsonb_object_agg(l.key, l.value) from label l where l.execution_id = p_id);
    end if;
    return (select jsonb_object_agg(l.key, l.value)
            from definition f cross join lateral merge_labels(p_parent, f.body, p_params, p_options::jsonb) l
            where f.id = p_definition);
end $$;
