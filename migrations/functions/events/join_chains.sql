-- Add effects of executions to the chains of their tree: events that it published, and executions that it started. A rule that
-- matches such an event is counted in these chains.
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
    -- An effect with bounds of its own has begun a chain. It descends from the same system events nevertheless.
    on conflict (id) do update set raised = array(select distinct unnest(own.raised || excluded.raised))
    where not excluded.raised <@ own.raised;
end $$;
