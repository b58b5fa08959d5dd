-- Repair invariant I5: write the missing wake rows for the gates of these lanes, so that an executor looks at open gates again.
-- Lanes that wait for their regrouping need none, since they are regrouped in any case.
create or replace function mend_gates(p_lanes uuid[]) returns message[]
language plpgsql
as $$
begin
    insert into wake (limit_id, group_value)
    select distinct l.gate_limit, l.gate_group from lane l
    where l.id = any (p_lanes) and l.gate_kind = 'limit'
        and not exists (select from wake w where w.limit_id = l.gate_limit and w.group_value = l.gate_group);
    insert into wake (namespace_id)
    select distinct l.namespace_id from lane l
    where l.id = any (p_lanes) and l.gate_kind = 'worker'
        and not exists (select from wake w where w.namespace_id = l.namespace_id);
    return '{}';
end $$;
