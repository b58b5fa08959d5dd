-- Seconds of one of an execution's times: what its own options say, else its definition, else p_default. Null: there is no
-- bound. Whoever says null means just that, and not that somebody else may say it.
create or replace function timeout_of(p_options jsonb, p_body jsonb, p_name text, p_default double precision)
returns double precision
language sql immutable
as $$
    select case
        when p_options -> 'timeouts' ? p_name then (p_options #>> array['timeouts', p_name])::double precision
        when p_body -> 'timeouts' ? p_name then (p_body #>> array['timeouts', p_name])::double precision
        else p_default end
$$;
