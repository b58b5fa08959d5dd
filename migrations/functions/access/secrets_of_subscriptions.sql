-- Return the sealed secrets that sign the calls of the subscriptions `p_names`. An executor's role can read the table `secret` in
-- no other way.
create or replace function secrets_of_subscriptions(p_names text[])
returns table (tenant text, name text, sealed bytea, data_key bytea, master_key text)
language sql stable security definer
as $$
    select s.tenant, s.name, s.sealed, s.data_key, s.master_key
    from unnest(p_names) as wanted join secret s on s.tenant = '' and s.name = 'subscription:' || wanted
$$;
