-- Choose which executions of an envelope a worker may claim, if some of its task executors have less room than the worker has
-- slots. Choose in the order of the envelope, at most `p_take`, and for each task executor at most its room (`fitting`).
-- `full_up` are the executions that have no room in their task executor.
create or replace function choose_for_executors(
    p_ids uuid[], p_take integer, p_limited executor_room[], out fitting uuid[], out full_up uuid[]
)
language plpgsql
as $$
begin
    with placed as (
        select x.id, x.ord, l.room, row_number() over (partition by l.executor order by x.ord) as place
        from unnest(p_ids) with ordinality x (id, ord)
        join execution e on e.id = x.id and e.status = 'scheduled'
        left join unnest(p_limited) l on l.definition_id = e.definition_id
    ), chosen as (
        select id from placed where room is null or place <= room order by ord limit p_take
    )
    select array(select id from chosen), array(select id from placed where place > room) into fitting, full_up;
end $$;
