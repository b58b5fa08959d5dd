-- Promote executions that wait before these keys, as far as there is room, in the order of rank, turn and the instant at which
-- they became ready. Choose, admit, and leave a wake row where more may start. Costs what is started, however many wait.
-- The caller holds the keys' locks, so no transaction frees a slot or joins the line between the look and the choice. Rows are
-- not waited for: the holder of a row may be waiting for these keys.
-- planner: lookups
create or replace function promote(p_keys limit_key[]) returns message[]
language plpgsql
as $$
declare
    v_gates limit_key[];
    v_several boolean;
    v_chosen candidate[];
    v_rooms room[];
    v_again limit_key[];
    v_messages message[] := '{}';
begin
    select array_agg(distinct k), bool_or(exists (
        select from lane l where l.gate_limit = k.limit_id and l.gate_group = k.group_value and cardinality(l.keys) > 1))
    into v_gates, v_several
    from unnest(p_keys) k
    where exists (select from lane l where l.gate_limit = k.limit_id and l.gate_group = k.group_value);
    if v_gates is null then
        return v_messages;
    end if;
    if v_several then
        -- Some need other keys too. All are looked at together, so that none takes a slot before an older one that needs both.
        select * into v_chosen, v_rooms, v_again from choose_one_by_one(v_gates);
    else
        select * into v_chosen, v_rooms, v_again from choose_at_once(v_gates);
    end if;
    if v_chosen <> '{}' then
        v_messages := admit(v_chosen, v_rooms);
    end if;
    if v_again <> '{}' then
        -- Some executions before these still have room (there were very many), or wait for the next instant of their rate.
        insert into wake (limit_id, group_value)
        select m.limit_id, m.group_value
        from unnest(key_room(array(select k from unnest(v_again) k where exists (
            select from lane l where l.gate_limit = k.limit_id and l.gate_group = k.group_value)))) m
        where m.free > 0;
    end if;
    return v_messages;
end $$;
