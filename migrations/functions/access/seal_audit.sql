-- Seal at most `p_most` committed rows of the audit. Each row gets the next position, and a hash of the previous seal and of its
-- own fields. The hash covers the fields in order, each after its length (`4:text`), and a null as `-`. `seal_of` in
-- `penstock.operate.audit` computes the same hash. The function locks the single row of `audit_chain`, so no row is sealed twice.
-- Return no row if there is nothing to seal, or if another transaction is sealing.
create or replace function seal_audit(p_most integer)
returns table (sealed integer, chain_position bigint, chain_seal bytea)
language plpgsql security definer
as $$
declare
    v_chain audit_chain;
    v_row audit;
    v_seal bytea;
    v_text text;
begin
    sealed := 0;
    if not exists (select from audit a where a.position is null) then
        return;
    end if;
    select * into v_chain from audit_chain for update skip locked;
    if not found then
        return;
    end if;
    for v_row in select * from audit a where a.position is null order by a.id limit p_most loop
        v_row.position := v_chain.position + 1;
        select string_agg(coalesce(octet_length(f.value) || ':' || f.value, '-'), '' order by f.ord) into v_text
        from unnest(array[
            v_row.position::text, v_row.id::text, (extract(epoch from v_row.at) * 1000000)::bigint::text, v_row."by", v_row.role,
            v_row.operation, v_row.target, v_row.outcome, v_row.reason, v_row.details
        ]) with ordinality f (value, ord);
        v_seal := sha256(v_chain.seal || convert_to(v_text, 'UTF8'));
        update audit a set position = v_row.position, previous = v_chain.seal, seal = v_seal where a.id = v_row.id;
        v_chain.position := v_row.position;
        v_chain.seal := v_seal;
        sealed := sealed + 1;
    end loop;
    update audit_chain c set position = v_chain.position, seal = v_chain.seal where sealed > 0;
    chain_position := v_chain.position;
    chain_seal := v_chain.seal;
    return next;
end $$;
