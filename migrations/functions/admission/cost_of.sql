-- Return the cost of an execution with the parameters `p_params`: the sum of the terms of `p_cost`. A term is an array of a factor,
-- the path of a parameter (null: the factor alone) and a default for a missing parameter. Return NaN, which is more than any
-- limit, if a parameter is not a number, or if the sum is negative.
create or replace function cost_of(p_cost jsonb, p_params jsonb) returns numeric
language sql immutable
as $$
    select case when bool_and(x.amount is not null) and sum(x.amount) >= 0 then sum(x.amount) else 'NaN' end
    from (
        select (t ->> 0)::numeric * case
            when t ->> 1 is null then 1
            when jsonb_typeof(v.value) = 'number' then (v.value #>> '{}')::numeric
            when v.value is null or v.value = 'null' then (t ->> 2)::numeric end as amount
        from jsonb_array_elements(p_cost -> 'terms') t
        cross join lateral (select p_params #> string_to_array(t ->> 1, '.') as value) v
    ) x
$$;
