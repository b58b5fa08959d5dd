-- Return a signature about an attempt for a purpose (`token`, `callback`), if the worker owns the attempt; otherwise null.
-- A worker cannot read the key, and so it can sign only for what it runs. The two hashes keep a signature from being extended.
create or replace function sign_attempt(p_worker uuid, p_execution uuid, p_attempt integer, p_purpose text) returns bytea
language sql stable security definer
as $$
    select sha256(k.key || sha256(k.key || convert_to(p_purpose, 'UTF8') || uuid_send(p_execution) || int4send(p_attempt)))
    from signing_key k where owns_attempt(p_worker, p_execution, p_attempt)
$$;
