-- requested or queued -> scheduled: gives these their slots, writes the admission log under the keys' locks, and stages
-- them on their routes. p_rooms tells of their keys as they were before. Skips rows that somebody else is about to end.
-- Returns as `admitted` who was started.
-- planner: hashed
create or replace function start_admitted(
    p_chosen chosen[], p_rooms room[], p_from text, out messages message[], out admitted uuid[]
)
language plpgsql
as $$
declare
    v_ids uuid[] := array(select c.execution_id from unnest(p_chosen) c);
    r record;
begin
    messages := '{}';
    admitted := '{}';
    if p_from = 'queued' then
        v_ids := array(select e.id from execution e where e.id = any (v_ids) and e.status = 'queued' for no key update skip locked);
        delete from waiter where execution_id = any (v_ids);
        insert into live (execution_id) select unnest(v_ids);
    end if;
    for r in
        with moved as (
            update execution e
            set status = start_status((select n.kind from namespace n where n.id = e.namespace_id)), keys = c.keys
            from unnest(p_chosen) c
            where e.id = any (v_ids) and e.id = c.execution_id
            returning c.*, e.attempt + 1 as attempt
        ), held as materialized (
            select m.*, unnest(m.keys) as key from moved m
        ), given as (
            insert into slot (key, execution_id, attempt) select key, execution_id, attempt from held
        ), logged as (
            -- Order is kept before one gate; at its other keys an execution never stood in line, until it is written. Nor did
            -- it where it waited in the turns of another key's groups.
            insert into admission (key, execution_id, attempt, rank, turn, ready_at, since, held, allowed, rated)
            select k.key, k.execution_id, k.attempt, k.rank, case when k.key = k.fair then k.turn else 0 end, k.ready_at,
                case when k.key = k.gate and (k.fair is null or k.fair = k.gate) then k.since else clock_timestamp() end,
                o.held + row_number() over (partition by k.key order by k.rank, k.turn, k.ready_at, k.execution_id),
                o.allowed, o.rated
            from held k join unnest(p_rooms) o on o.key = k.key
        )
        select queue, envelope, array_agg(execution_id order by rank, turn, ready_at, execution_id) as ids
        from moved group by queue, envelope
    loop
        admitted := admitted || r.ids;
        messages := messages || stage(r.queue, r.ids, r.envelope);
    end loop;
end $$;
