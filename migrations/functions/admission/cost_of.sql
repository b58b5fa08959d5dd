-- Return the cost of an execution with the parameters `p_params`: the sum of the terms in `p_cost`. A term is an array of a
-- factor, the path of a parameter, and a default for a missing parameter. If the path is null, the term is the factor alone.
-- Return NaN, which is more than any limit, if a parameter is not a number or the sum is negative. The function is called for
-- each execution, so it runs no query.
create or replace function cost_of(p_cost jsonb, p_params jsonb) returns numeric
language plpgsql immutable
as $$
declare
    v_terms constant jsonb := p_cost -> 'terms';
    v_term jsonb;
    v_value jsonb;
    v_amount numeric;
    v_sum numeric;
begin
    for v_place in 0 .. jsonb_array_length(v_terms) - 1 loop
        v_term := v_terms -> v_place;
        v_amount := v_term ->> 0;
        if v_term ->> 1 is not null then
            v_value := p_params #> string_to_array(v_term ->> 1, '.');
            v_amount := v_amount * case
                when jsonb_typeof(v_value) = 'number' then v_value::numeric
                when v_value is null or v_value = 'null' then (v_term ->> 2)::numeric end;
        end if;
        if v_amount is null then
            return 'NaN';
        end if;
        v_sum := coalesce(v_sum, 0) + v_amount;
    end loop;
    return case when v_sum >= 0 then v_sum else 'NaN' end;
end $$;
