-- Return the values at `p_paths` of an execution as a text. A path such as `labels.customer` is the label `customer`, and any other
-- path is one of a parameter. Equal values give equal texts: 7.0 gives the text of 7. A missing parameter or label gives that of
-- null. A text of more than 64 bytes is shortened to 16 characters and a hash of the whole.
-- The execution `p_id` is stored, and so are its parameters and labels, if `p_definition` is null. Otherwise it is about to be
-- created with the parameters `p_params`, and with the labels that label_executions will store (merge_labels).
create or replace function group_values(
    p_paths text[], p_id uuid, p_parent uuid, p_params jsonb, p_definition integer, p_options text
) returns text
language plpgsql stable
as $$
declare
    v_params jsonb := p_params;
    v_labels jsonb;
    v_value jsonb;
    v_group text;
begin
    if v_params is null then
        select p.params into v_params from payload p where p.execution_id = p_id;
    end if;
    if p_paths::text like '%labels.%' and p_definition is null then
        v_labels := (select jsonb_object_agg(l.key, l.value) from label l where l.execution_id = p_id);
    elsif p_paths::text like '%labels.%' then
        v_labels := (
            select jsonb_object_agg(l.key, l.value)
            from definition f cross join lateral merge_labels(p_parent, f.body, p_params, p_options::jsonb) l
            where f.id = p_definition);
    end if;
    if cardinality(p_paths) = 1 then
        v_value := case when starts_with(p_paths[1], 'labels.') then v_labels -> substr(p_paths[1], 8)
            else v_params #> string_to_array(p_paths[1], '.') end;
        if jsonb_typeof(v_value) = 'number' then
            v_value := to_jsonb(trim_scale((v_value #>> '{}')::numeric));
        end if;
        v_group := jsonb_build_array(v_value)::text;
    else
        v_group := (
            select jsonb_agg(case when jsonb_typeof(x.value) = 'number'
                then to_jsonb(trim_scale((x.value #>> '{}')::numeric)) else x.value end order by x.n)::text
            from (select case when starts_with(b.path, 'labels.') then v_labels -> substr(b.path, 8)
                      else v_params #> string_to_array(b.path, '.') end as value, b.n
                  from unnest(p_paths) with ordinality as b (path, n)) x);
    end if;
    return case when octet_length(v_group) <= 64 then v_group else left(v_group, 16) || '~' || md5(v_group) end;
end $$;
