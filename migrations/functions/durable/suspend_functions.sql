-- Suspend durable functions that have just become waiting. What a function waits for may have arrived while the function still
-- ran: a child's end, a signal, a requested end, or a step's result from an operator. That could not wake it then. So this
-- function looks for arrivals under the locks of the rows, and wakes such functions again. A transaction with a later arrival
-- finds the function suspended. A result from before the start of the present attempt wakes no function, since the attempt has
-- read it.
-- planner: lookups
create or replace function suspend_functions(p_ids uuid[], p_awaits jsonb[]) returns message[]
language plpgsql
as $$
begin
    insert into suspended (execution_id, until, children, signals)
    select a.id, (a.awaits ->> 'until')::timestamptz,
        array(select c::uuid from jsonb_array_elements_text(a.awaits -> 'children') c), a.awaits -> 'signals'
    from unnest(p_ids, p_awaits) as a (id, awaits);
    insert into timer (due_at, kind, execution_id)
    select s.until, 'wake', s.execution_id from suspended s where s.execution_id = any (p_ids) and s.until is not null
    on conflict do nothing;
    perform send_given_signals(p_ids);
    return wake_functions(array(
        select s.execution_id from suspended s where s.execution_id = any (p_ids) and (
            exists (select from execution e where e.id = s.execution_id and e.ends_as is not null)
            or exists (select from execution e join step t on t.execution_id = e.id and t.attempt = e.attempt
                where e.id = s.execution_id and t.status = 'completed' and t.told is null
                    and t.kind not in ('value', 'version', 'state'))
            or exists (select from execution c where c.id = any (s.children) and c.finished_at is not null)
            or exists (select from jsonb_array_elements(s.signals) g join step t on t.execution_id = s.execution_id
                and t.name = g ->> 0 and t.ordinal = (g ->> 1)::integer))
        order by 1), 'what the execution waits for had arrived before');
end $$;
