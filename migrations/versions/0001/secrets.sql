-- A stored secret. `sealed` is the secret, encrypted under its own key. `data_key` is that key, encrypted under the master
-- key with the id `master_key`; the master key itself is never in the database. A secret with an empty tenant signs the calls
-- of a webhook (`webhook:NAME`) or of a subscription (`subscription:NAME`), and no action can use it.
create table secret (
    tenant text not null,
    name text not null,
    sealed bytea not null,
    data_key bytea not null,
    master_key text not null,
    set_by text not null,
    set_at timestamptz not null default clock_timestamp(),
    primary key (tenant, name)
);

-- The data keys of encrypted tenants. Their values are sealed: parameters, payloads, results, log lines and others. `data_key` is encrypted
-- under the master key of this id, which is never here. New values are sealed under the key that `seals`; the others open old values.
create table tenant_key (
    tenant text not null,
    number integer not null,
    data_key bytea not null,
    master_key text not null,
    seals boolean not null,
    made_by text not null,
    made_at timestamptz not null default clock_timestamp(),
    primary key (tenant, number)
);
create unique index tenant_key_seals on tenant_key (tenant) where seals;
