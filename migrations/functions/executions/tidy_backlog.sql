-- Delete at most `p_limit` rows of the backlog with executions that are no longer scheduled on their queue. `gone` is their
-- number. Also end the order of queues that need no turns any more, and return their number in `ended`. Such a queue has been
-- ordered for `p_age`, has an empty backlog, and has only one tenant.
-- planner: indexes
create or replace function tidy_backlog(p_age interval, p_limit integer, out gone integer, out ended integer)
language plpgsql
as $$
declare
    v_queues text[];
begin
    with stale as (
        delete from backlog where ctid = any (array(
            select b.ctid from backlog b
            where not exists (
                select from execution e join namespace n on n.id = e.namespace_id
                where e.id = b.execution_id and e.status = 'scheduled' and n.queue = b.queue)
            limit p_limit for update of b skip locked))
        returning 1
    )
    select count(*) into gone from stale;
    -- A claim that has locked the row in `route_turn` may be about to insert into the backlog. Either this transaction gets the
    -- lock, and sees those rows in the next statement. Or it skips the queue until a later call.
    insert into route_turn (queue) select distinct queue from ordered_route where since < clock_timestamp() - p_age order by queue
    on conflict do nothing;
    v_queues := array(
        select queue from route_turn
        where queue in (select queue from ordered_route where since < clock_timestamp() - p_age)
        order by queue for no key update skip locked);
    with over as (
        delete from ordered_route o
        where o.queue = any (v_queues)
            and (select min(tenant) is not distinct from max(tenant) from route_tenant t where t.queue = o.queue)
            and not exists (select from backlog b where b.queue = o.queue)
        returning o.queue
    )
    select count(distinct queue) into ended from over;
end $$;
