-- Execute enforcements (created -> executed), and create the execution of each. An enforcement that another delivery of the event
-- has executed is left alone.
create or replace function execute_enforcements(p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    v_moved uuid[];
begin
    with moved as (
        update enforcement set status = 'executed'
        where execution_id = any (p_ids) and status = 'created'
        returning execution_id
    )
    select array_agg(execution_id) into v_moved from moved;
    if v_moved is null then
        return '{}';
    end if;
    return start_enforced(v_moved);
end $$;
