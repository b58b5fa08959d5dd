-- Return the seconds of the timeout `p_name` of an execution: the value in its options, else in its definition, else `p_default`.
-- Null means no timeout. An explicit null counts as a value, and does not fall through to the next level.
create or replace function timeout_of(p_options jsonb, p_body jsonb, p_name text, p_default double precision)
returns double precision
language sql immutable
as $$
    select case
        when p_options -> 'timeouts' ? p_name then (p_options #>> array['timeouts', p_name])::double precision
        when p_body -> 'timeouts' ? p_name then (p_body #>> array['timeouts', p_name])::double precision
        else p_default end
$$;
