-- Return the token with this digest if it is valid and has the scope `work`, and note its use. After a rotation, the old digest
-- is valid until `old_until`. A gateway calls this function. The role of the gateway is a worker's, which cannot read the table
-- of tokens, so the function has the owner's rights.
create or replace function find_work_token(p_digest bytea)
returns table (name text, scopes text[], tenants text[], routes text[], packs text[])
language sql security definer
as $$
    with valid as (
        select * from api_token t
        where 'work' = any (t.scopes) and (
            t.digest = p_digest and (t.expires_at is null or t.expires_at > clock_timestamp())
            or t.old_digest = p_digest and t.old_until > clock_timestamp())
    ), used as (
        update api_token t set used_at = clock_timestamp() from valid v
        where t.id = v.id and (v.used_at is null or v.used_at < clock_timestamp() - interval '10 minutes')
    )
    select v.name, v.scopes, v.tenants, v.routes, v.packs from valid v
$$;
