-- Write to the namespaces `p_ids` (null: all) whether a hold covers them: `held`, `releasing`, or null. No hold may be added
-- meanwhile: the caller has locked the rules exclusively, or has inserted these namespaces in this transaction. Clients insert
-- namespaces but may not change them, so the function has the owner's rights.
create or replace function mark_holds(p_ids integer[]) returns void
language plpgsql security definer
as $$
begin
    update namespace n set hold = x.hold
    from (
        select s.id, case when count(h.name) = 0 then null
            when bool_or(h.releasing_since is null) then 'held' else 'releasing' end as hold
        from namespace s left join hold h on is_covered(h.kind, h.name, s)
        where p_ids is null or s.id = any (p_ids)
        group by s.id
    ) x
    where n.id = x.id and n.hold is distinct from x.hold;
end $$;
