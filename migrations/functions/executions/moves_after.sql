-- Return the moves after the instant `p_at`, oldest first. If there are more than `p_limit`, return any `p_limit` of them: no
-- reader can follow them all, and sorting them would be slow. Moves of archived executions are left out.
-- planner: tails
create or replace function moves_after(p_at timestamptz, p_limit integer)
returns table (
    id uuid, at timestamptz, old text, new text, attempt integer, reason text, namespace text, action text, parent uuid,
    task text
)
language plpgsql stable
as $$
begin
    return query
    select x.* from (
        select h.execution_id, h.at, h.old, h.new, h.attempt, h.reason, n.name, n.action, e.parent, e.task
        from history h join execution e on e.id = h.execution_id join namespace n on n.id = e.namespace_id
        where h.at > p_at limit p_limit
    ) x
    order by x.at;
end $$;
