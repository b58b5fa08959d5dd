-- Return the values of the parameters at `p_paths` as text that is equal for equal values only. A missing parameter counts as
-- null. A text of more than 64 bytes is cut, and gets a hash of the whole.
create or replace function group_of(p_paths text[], p_params jsonb) returns text
language plpgsql stable
as $$
declare
    v_group text;
begin
    if cardinality(p_paths) = 1 then
        v_group := jsonb_build_array(p_params #> string_to_array(p_paths[1], '.'))::text;
    else
        v_group := (select jsonb_agg(p_params #> string_to_array(b.path, '.') order by b.n)::text
                    from unnest(p_paths) with ordinality as b (path, n));
    end if;
    return case when octet_length(v_group) <= 64 then v_group else left(v_group, 16) || '~' || md5(v_group) end;
end $$;
