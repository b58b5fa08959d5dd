-- Delete the next executions of one rank from the backlog of a queue, at most `p_size`, and return them in order. If several
-- tenants wait, return only one execution, of the tenant that has the turn. The tenants have turns in the order of their names,
-- and after the last name comes the first. The turn goes to the tenant after that of the last turn. Without a last turn, it goes
-- to the tenant after that of the execution `p_named`. The caller has locked the row of the route in `route_turn`.
-- planner: lookups_planned_once
create or replace function take_turn(p_queue text, p_rank smallint, p_size integer, p_named uuid) returns uuid[]
language plpgsql
as $$
declare
    v_first text;
    v_last text;
    v_had text;
    v_tenant text;
    v_taken uuid[];
begin
    select min(tenant), max(tenant) into v_first, v_last from backlog where queue = p_queue and rank = p_rank;
    select tenant into v_had from tenant_turn where queue = p_queue and rank = p_rank;
    v_tenant := v_first;
    if v_first <> v_last then
        p_size := 1;
        v_tenant := coalesce((
            select min(tenant) from backlog where queue = p_queue and rank = p_rank
                and tenant > coalesce(v_had, (select split_part(n.name, '::', 1)
                    from execution e join namespace n on n.id = e.namespace_id where e.id = p_named))), v_first);
    end if;
    if v_had is distinct from v_tenant then
        insert into tenant_turn (queue, rank, tenant) values (p_queue, p_rank, v_tenant)
        on conflict (queue, rank) do update set tenant = excluded.tenant;
    end if;
    with taken as (
        delete from backlog where ctid = any (array(
            select b.ctid from backlog b join execution e on e.id = b.execution_id and e.status = 'scheduled'
            where b.queue = p_queue and b.rank = p_rank and b.tenant = v_tenant
            order by b.root_at, b.ready_at, b.execution_id limit p_size
            for update of b skip locked for no key update of e skip locked))
        returning execution_id, root_at, ready_at
    )
    select coalesce(array_agg(execution_id order by root_at, ready_at, execution_id), '{}') into v_taken from taken;
    return v_taken;
end $$;
