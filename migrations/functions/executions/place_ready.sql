-- Place executions that have just started. Every function that makes work ready calls this one. What it does depends on their
-- kind:
-- - Actions are assigned to workers with permits (assign_scheduled). The others are staged on their route, in the order of
--   `p_ids`. On an ordered route, or if some executions have a priority (`p_prior`), they also join the backlog.
-- - If a worker of the route lacks the action (`p_lacked`), they are parked instead of staged, until a worker that has the action
--   takes them.
-- - Waiting tasks begin their waits, and workflows are staged.
-- Nothing is assigned in a transaction that may stay open with the permits of workers. For a caller's own transaction,
-- `p_assigns` is false. Behind a pooler, where a transaction has several round trips, `penstock.assigns` is `off`. A worker that
-- claims its next work in this transaction has set `penstock.own_queues` and `penstock.own_slots`. Work that fits these slots is
-- left to that worker. The message `placed.<queue>` reports that work was assigned on a queue, and `parked.<queue>` that work was
-- parked.
create or replace function place_ready(
    p_kind text, p_queue text, p_ids uuid[], p_size integer, p_prior boolean, p_lacked boolean, p_assigns boolean
) returns message[]
language plpgsql
as $$
declare
    v_messages message[] := '{}';
    v_assigned uuid[];
begin
    if p_kind = 'wait' then
        return begin_waits(p_ids);
    elsif p_kind <> 'action' then
        return stage(p_queue, p_ids, p_size);
    end if;
    if p_assigns and current_setting('penstock.assigns', true) is distinct from 'off' and not (p_queue = any (coalesce(nullif(current_setting('penstock.own_queues', true), '')::text[], '{}'))
        and cardinality(p_ids) <= nullif(current_setting('penstock.own_slots', true), '')::integer)
    then
        select a.messages, a.assigned into v_messages, v_assigned from assign_scheduled(p_queue, p_ids) a;
        if v_assigned <> '{}' then
            v_messages := v_messages || (0, 'placed.' || p_queue, '{}')::message;
            p_ids := array(select d.id from unnest(p_ids) with ordinality d (id, place) where d.id <> all (v_assigned) order by d.place);
        end if;
    end if;
    if p_ids = '{}' then
        return v_messages;
    end if;
    if p_lacked then
        -- On the route, the worker that lacks the action could receive them first.
        insert into parked (execution_id, queue, definition_id, rank, ready_at)
        select id, p_queue, definition_id, -priority, ready_at from execution where id = any (p_ids);
        v_messages := v_messages || (0, 'parked.' || p_queue, '{}')::message;
    else
        v_messages := v_messages || stage(p_queue, p_ids, p_size);
    end if;
    if p_prior or exists (select from ordered_route where queue = p_queue) then
        perform join_backlog(p_queue, p_ids);
    end if;
    return v_messages;
end $$;
