-- Return the rows of a table with daily partitions that stored work still needs: `needed_by` is the table that refers to the row, and
-- `id` its id (for `fire` that of its execution). `p_from` and `p_to` bound the instants of the rows, where that makes the search cheap.
-- - event: its rules were not matched yet (unmatched), or its burst or window is open (burst_event).
-- - archive: its fire (open_fire) or its poll trigger (poll) has not recorded its end; its enforcement would count as never executed
--   (enforcement); or a re-run of it, or of the run that it was a task of, is open, and copies results when it starts (payload).
-- - archived_label: the execution is still in the archive.
-- - fire: its execution has not ended (open_fire), or waits for the run before it (waiting_fire).
-- Rows of `history`, `log_line` and `admission` tell what has happened. No work reads them again.
create or replace function needed_rows(p_table text, p_from timestamptz, p_to timestamptz)
returns table (needed_by text, id uuid)
language plpgsql stable
as $$
begin
    if p_table = 'event' then
        return query select 'unmatched', u.event_id from unmatched u
            union all select 'burst_event', b.event_id from burst_event b where b.burst is null;
    elsif p_table = 'archive' then
        return query select 'open_fire', o.execution_id from open_fire o
            union all select 'poll', p.running from poll p where p.running is not null
            union all select 'enforcement', n.execution_id from enforcement n where n.created_at < p_to and n.status = 'executed'
            union all select 'payload', (y.origin ->> 'rerun_of')::uuid from payload y
                join execution e on e.id = y.execution_id and e.finished_at is null
                where y.origin ? 'rerun_of'
            union all select 'payload', a.id from payload y
                join execution e on e.id = y.execution_id and e.finished_at is null
                join archive r on r.id = (y.origin ->> 'rerun_of')::uuid
                join archive a on a.root = r.root and a.parent = r.id and a.finished_at >= p_from and a.finished_at < p_to
                where y.origin ?| array['from_failed', 'from_task'];
    elsif p_table = 'archived_label' then
        return query select 'archive', a.id from archive a where a.finished_at >= p_from and a.finished_at < p_to;
    elsif p_table = 'fire' then
        return query select 'open_fire', o.execution_id from open_fire o
            union all select 'waiting_fire', w.execution_id from waiting_fire w;
    end if;
end $$;
