-- Note the tenants that have actions on queues. A queue with several tenants is ordered from then on, so that they take turns.
-- The function has the owner's rights: a client's role may name a tenant and need not see the others.
-- planner: lookups
create or replace function note_tenants(p_queues text[], p_names text[]) returns void
language plpgsql security definer
as $$
begin
    insert into route_tenant (queue, tenant)
    select distinct d.queue, split_part(d.name, '::', 1) from unnest(p_queues, p_names) d (queue, name)
    where not exists (
        select from route_tenant t where t.queue = d.queue and t.tenant = split_part(d.name, '::', 1));
    if found then
        insert into ordered_route (queue)
        select q from (select distinct unnest(p_queues) as q) d
        where (select min(tenant) < max(tenant) from route_tenant where queue = q)
            and not exists (select from ordered_route o where o.queue = q);
    end if;
end $$;
