-- Return a signature about an attempt for a purpose (`token` or `callback`), or null if the worker does not own the attempt. A
-- worker cannot read the key, so it can sign only for its own attempts. The second hash prevents that a signature is extended to
-- a longer text.
create or replace function sign_attempt(p_worker uuid, p_execution uuid, p_attempt integer, p_purpose text) returns bytea
language sql stable security definer
as $$
    select sha256(k.key || sha256(k.key || convert_to(p_purpose, 'UTF8') || uuid_send(p_execution) || int4send(p_attempt)))
    from signing_key k where owns_attempt(p_worker, p_execution, p_attempt)
$$;
