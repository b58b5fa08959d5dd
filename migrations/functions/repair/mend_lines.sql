-- I5w. An execution that stands in line without being queued leaves it; one that is queued and stands nowhere is requested
-- again, and gets its old place by the instant at which it became ready; and each lane notes again which one is its first.
-- p_ids are executions and lanes.
create or replace function mend_lines(p_ids text[]) returns message[]
language plpgsql
as $$
declare
    v_messages message[] := '{}';
    v_ids uuid[] := array(select x::uuid from unnest(p_ids) x where x ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$');
    v_lanes text[];
    v_keys text[];
    v_again uuid[];
begin
    perform from execution where id = any (v_ids) order by id for no key update;
    v_lanes := array(select id from lane where id = any (p_ids)
                     union select lane from waiter where execution_id = any (v_ids));
    v_keys := array(select k from lane l cross join unnest(l.keys) k where l.id = any (v_lanes)
                    union select k from execution e cross join unnest(e.keys) k where e.id = any (v_ids));
    perform lock_keys(v_keys);
    delete from waiter w where w.execution_id = any (v_ids)
        and (not exists (select from execution e where e.id = w.execution_id and e.status = 'queued')
             or not exists (select from lane l where l.id = w.lane));
    with moved as (
        update execution e set status = 'requested', reason = 'it stood in no line (penstock repair)'
        where e.id = any (v_ids) and e.status = 'queued'
            and not exists (select from waiter w where w.execution_id = e.id)
        returning id
    )
    select array_agg(id) into v_again from moved;
    if v_again is not null then
        v_messages := request_again(v_again);
    end if;
    perform find_heads(v_lanes);
    return v_messages || promote(v_keys);
end $$;
