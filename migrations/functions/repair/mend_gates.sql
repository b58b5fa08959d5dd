-- I5. Gates that are open are looked at again.
create or replace function mend_gates(p_lanes text[]) returns message[]
language plpgsql
as $$
begin
    insert into wake (key)
    select distinct l.gate from lane l
    where l.id = any (p_lanes) and l.gate <> 'regroup' and not exists (select from wake w where w.key = l.gate);
    return '{}';
end $$;
