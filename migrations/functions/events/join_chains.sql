-- Add the effects `p_ids` of the executions `p_causes` to the chains of their trees. An effect is an event that an execution has
-- published, or an execution that it has started. When a rule matches such an event, its execution counts in these chains.
-- planner: lookups
create or replace function join_chains(p_causes uuid[], p_ids uuid[]) returns void
language plpgsql
as $$
begin
    if not exists (select from chain_step) then
        return;
    end if;
    insert into chain_step as own (id, cause, name, depth, chains, raised)
    select distinct on (d.id) d.id, s.id, (select e.trigger from event e where e.id = d.id limit 1), s.depth, s.chains, s.raised
    from (select c.id, root_of(c.cause) as root from unnest(p_causes, p_ids) as c (cause, id) order by 1) d
    join chain_step s on s.id = d.root
    order by d.id, s.id
    -- An effect with its own bounds has begun its own chain. It still descends from the same system events.
    on conflict (id) do update set raised = array(select distinct unnest(own.raised || excluded.raised))
    where not excluded.raised <@ own.raised;
end $$;
