-- Begin the waits of executions that have just become waiting: write their inquiries, or suspend those that are durable
-- functions (`awaits` in `p_asked`), or wait for something outside (`outside`). A durable function with a requested
-- end is woken at once.
create or replace function begin_waiting(p_ids uuid[], p_asked jsonb[]) returns message[]
language plpgsql
as $$
declare
    v_messages message[] := '{}';
    v_ids uuid[];
    v_asked jsonb[];
begin
    select array_agg(a.id), array_agg(a.asked) into v_ids, v_asked
    from unnest(p_ids, p_asked) as a (id, asked) where not a.asked ?| array['awaits', 'outside'];
    if v_ids is not null then
        v_messages := ask_inquiries(v_ids, v_asked);
    end if;
    select array_agg(a.id), array_agg(a.asked -> 'awaits') into v_ids, v_asked
    from unnest(p_ids, p_asked) as a (id, asked) where a.asked ? 'awaits';
    if v_ids is not null then
        v_messages := v_messages || suspend_functions(v_ids, v_asked);
    end if;
    select array_agg(a.id), array_agg(a.asked) into v_ids, v_asked
    from unnest(p_ids, p_asked) as a (id, asked) where a.asked ? 'outside';
    if v_ids is not null then
        v_messages := v_messages || wait_outside(v_ids, v_asked);
    end if;
    return v_messages || wake_functions(array(
        select id from execution where id = any (p_ids) and ends_as is not null order by id), 'its end is requested');
end $$;
