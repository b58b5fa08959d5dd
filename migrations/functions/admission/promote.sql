-- Promote executions: admit those that wait at the gates of `p_keys`, by their place, as far as there is room. If more may start
-- later, write a wake row. Under a limit that is being regrouped, none starts. The cost of a call of this function depends on the
-- number of executions that start, not on the number that wait. The caller holds the locks of the keys, so no transaction frees a
-- slot or joins a lane between the check and the choice. An execution with a locked row is skipped, since the holder of that row
-- may wait for these keys.
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
    v_shut integer[];
    v_passed limit_key[] := '{}';
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
    v_shut := regrouping_limits();
    if v_shut <> '{}' then
        v_passed := array(select k from unnest(v_gates) k where k.limit_id = any (v_shut));
        v_gates := array(select k from unnest(v_gates) k where k.limit_id <> all (v_shut));
    end if;
    if v_several then
        -- Some lanes need several keys, so all lanes are compared. Otherwise an execution could take a slot before an older one
        -- that needs this key and another.
        select * into v_chosen, v_rooms, v_again from choose_one_by_one(v_gates);
    else
        select * into v_chosen, v_rooms, v_again from choose_at_once(v_gates);
    end if;
    if v_chosen <> '{}' then
        v_messages := admit(v_chosen, v_rooms);
    end if;
    v_again := v_again || v_passed;
    if v_again <> '{}' then
        -- Either there is still room at these gates, because one call starts a limited number, or the rate permits the next start
        -- later. Or their limit is being regrouped. Then the wake row counts as due when that is done (wake_keys).
        insert into wake (limit_id, group_value, at)
        select x.limit_id, x.group_value, x.at
        from (
            select m.limit_id, m.group_value, m.weighted, next_start(m) as at
            from unnest(key_room(array(select distinct k from unnest(v_again) k where exists (
                select from lane l where l.gate_limit = k.limit_id and l.gate_group = k.group_value)))) m offset 0) x
        where x.at is not null and not exists (
            select from wake w where w.limit_id = x.limit_id and w.group_value = x.group_value
                and w.at <= x.at and (x.weighted and w.at > clock_timestamp() or x.limit_id = any (v_shut)));
    end if;
    if exists (select from unnest(v_rooms) m where m.allowed = 'Infinity') then
        v_messages := v_messages || note_spent_budgets(v_gates)
            || timers_set((select min(due_at) from timer where kind = 'spent' and due_at <= clock_timestamp()));
    end if;
    return v_messages;
end $$;
