-- Return the values at `p_paths` as a text. A path such as `labels.customer` is the label `customer` in `p_labels`, and any other
-- path is one of the parameters `p_params`. Equal values give equal texts: 7.0 gives the text of 7. A missing parameter or label
-- gives that of null. A text of more than 64 bytes is shortened to 16 characters and a hash of the whole.
create or replace function group_values(p_paths text[], p_params jsonb, p_labels jsonb) returns text
language plpgsql stable
as $$
declare
    v_value jsonb;
    v_group text;
begin
    if cardinality(p_paths) = 1 then
        v_value := case when starts_with(p_paths[1], 'labels.') then p_labels -> substr(p_paths[1], 8)
            else p_params #> string_to_array(p_paths[1], '.') end;
        if jsonb_typeof(v_value) = 'number' then
            v_value := to_jsonb(trim_scale((v_value #>> '{}')::numeric));
        end if;
        v_group := jsonb_build_array(v_value)::text;
    else
        v_group := (
            select jsonb_agg(case when jsonb_typeof(x.value) = 'number'
                then to_jsonb(trim_scale((x.value #>> '{}')::numeric)) else x.value end order by x.n)::text
            from (select case when starts_with(b.path, 'labels.') then p_labels -> substr(b.path, 8)
                      else p_params #> string_to_array(b.path, '.') end as value, b.n
                  from unnest(p_paths) with ordinality as b (path, n)) x);
    end if;
    return case when octet_length(v_group) <= 64 then v_group else left(v_group, 16) || '~' || md5(v_group) end;
end $$;
