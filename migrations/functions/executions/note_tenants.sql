-- Record which tenants have actions on which queues. From the second tenant on, a queue is ordered, so that the tenants take
-- turns. A client's role may name its own tenant and need not see the others, so the function has the owner's rights.
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
