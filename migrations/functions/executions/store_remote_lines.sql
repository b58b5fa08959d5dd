-- Store log lines that a worker which calls a gateway has written, if it owns the attempts. A line that is stored already is left
-- alone. `lost` are the executions with attempts that the worker does not own. None of their lines is stored.
-- planner: lookups
create or replace function store_remote_lines(
    p_worker uuid, p_name text, p_ids uuid[], p_attempts integer[], p_seqs bigint[], p_streams text[], p_lines text[],
    out lost uuid[]
)
language plpgsql
as $$
begin
    -- Another call may store the same lines at this moment, or the attempt may end or be taken back. The locks on the rows
    -- prevent both.
    perform from execution where id = any (p_ids) order by id for no key update;
    lost := array(
        select distinct d.id from unnest(p_ids, p_attempts) d (id, attempt)
        where not owns_attempt(p_worker, d.id, d.attempt));
    insert into log_line (execution_id, attempt, seq, stream, line, worker_id, worker)
    select d.id, d.attempt, d.seq, d.stream, d.line, p_worker, p_name
    from unnest(p_ids, p_attempts, p_seqs, p_streams, p_lines) d (id, attempt, seq, stream, line)
    where d.id <> all (lost) and not exists (
        select from log_line l where l.execution_id = d.id and l.attempt = d.attempt and l.seq = d.seq);
end $$;
