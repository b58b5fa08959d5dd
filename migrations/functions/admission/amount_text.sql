-- Return an amount as text, with its unit if it has one: `12,300 tokens`, `1.5`.
create or replace function amount_text(p_amount numeric, p_unit text) returns text
language sql immutable
as $$
    select rtrim(to_char(p_amount, 'FM999,999,999,999,999,990.999999'), '.') || case p_unit when '' then '' else ' ' || p_unit end
$$;
