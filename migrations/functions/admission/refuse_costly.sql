-- Cancel the new executions that cost more than a limit of theirs allows at all, each with its figures. `affordable` are the other
-- candidates. The caller holds the locks of the rows.
create or replace function refuse_costly(p_candidates candidate[], out messages message[], out affordable candidate[])
language plpgsql
as $$
declare
    v_ids uuid[] := '{}';
    r record;
begin
    messages := '{}';
    for r in select t.reason, array_agg(t.id order by t.id) as ids from too_costly(p_candidates) t group by t.reason order by 1 loop
        messages := messages || (end_executions(r.ids, array['requested'], 'cancelled', r.reason, null)).messages;
        v_ids := v_ids || r.ids;
    end loop;
    affordable := case when v_ids = '{}' then p_candidates
        else array(select c from unnest(p_candidates) c where c.id <> all (v_ids)) end;
end $$;
