-- Return an amount as text, followed by its unit if that is not empty: `12,300 tokens`, `1.5`. An amount with more than 18 digits
-- is in scientific notation: `1.00e+308`.
create or replace function amount_text(p_amount numeric, p_unit text) returns text
language sql immutable
as $$
    select case when abs(p_amount) < 1e18 then rtrim(to_char(p_amount, 'FM999,999,999,999,999,990.999999'), '.')
        else trim(to_char(p_amount, '9.99EEEE')) end || case p_unit when '' then '' else ' ' || p_unit end
$$;
