-- Return the reason why the rule `p_rule` starts nothing for an event of the chain `p_chain`. The text names the bound that is
-- reached, and the circle of triggers and rules that leads back to this rule. If there is no circle, it names the triggers and
-- rules before the event.
create or replace function describe_cut(p_chain chain, p_event uuid, p_rule text) returns text
language plpgsql stable
as $$
declare
    v_names text[] := array[p_rule];
    v_id uuid := p_event;
    v_step chain_step;
    v_circle boolean := false;
    v_trigger boolean := true;
begin
    while v_id is not null and cardinality(v_names) < 40 and not v_circle loop
        select * into v_step from chain_step where id = v_id;
        exit when not found;
        if v_step.name is not null then
            v_circle := not v_trigger and v_step.name = p_rule;
            v_names := v_step.name || v_names;
            v_trigger := not v_trigger;
        end if;
        v_id := v_step.cause;
    end loop;
    if cardinality(v_names) = 1 then
        v_names := (select e.trigger from event e where e.id = p_event limit 1) || v_names;
    end if;
    return format('ChainCut: %s of %s %s is reached, so %s starts nothing more here. The %s: %s. Change the rules so that the chain '
        'ends, or raise the bound and run `penstock rules rerun`',
        case when p_chain.descendants >= p_chain.max_descendants then format('max_descendants=%s', p_chain.max_descendants)
            else format('max_depth=%s', p_chain.max_depth) end,
        case when p_chain.rule is null then 'the event or start' else format('the rule %s, from the execution', p_chain.rule) end,
        p_chain.id, p_rule, case when v_circle then 'circle' else 'chain' end, array_to_string(v_names, ' -> '));
end $$;
