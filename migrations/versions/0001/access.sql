-- The tokens of the HTTP API, and their rights. Only the SHA-256 of a token's secret is kept. A null `tenants` means all tenants. After a
-- rotation the secret before (`old_digest`) is good until `old_until`. `used_at` is written once in ten minutes at most.
create table api_token (
    id uuid primary key,
    name text not null unique,
    digest bytea not null unique,
    scopes text[] not null,
    tenants text[] not null default '{}',
    created_by text not null,
    created_at timestamptz not null default clock_timestamp(),
    expires_at timestamptz,
    rotated_at timestamptz,
    used_at timestamptz,
    old_digest bytea unique,
    old_until timestamptz
);

-- Addresses below /hooks that other programs call, and what becomes of their calls: events of `trigger`. The row of `secret` that is
-- named after the webhook signs or accompanies each call, as `signature` says. `header`: where a plain secret stands;
-- `key_header`: what tells a copy; `payload`: the template of the event's payload, if it is not the body itself.
create table webhook (
    name text primary key,
    trigger text not null,
    tenant text not null,
    signature text not null,
    header text,
    key_header text,
    payload jsonb,
    created_by text not null,
    created_at timestamptz not null default clock_timestamp()
);

-- What was changed over HTTP and by commands, in the transaction of the change, and what was refused. Starts and events are not
-- here: they are kept with their makers. `details` is JSON with sorted keys. `role` is the role of the session that wrote the row.
-- `seal_audit` gives rows their place in the chain: `seal` is the hash of `previous` (the seal of the row before) and the row.
create table audit (
    id bigint generated always as identity primary key,
    at timestamptz not null default clock_timestamp(),
    by text not null,
    role text not null default session_user,
    operation text not null,
    target text not null,
    outcome text not null,
    reason text,
    details text not null,
    position bigint unique,
    previous bytea,
    seal bytea
);
create index audit_at on audit (at);
create index audit_unsealed on audit (id) where position is null;

-- The ends of the chain, one row. Rows up to `dropped_position` were older than they are kept for.
create table audit_chain (
    only_row boolean primary key default true check (only_row),
    position bigint not null,
    seal bytea not null,
    dropped_position bigint not null,
    dropped_seal bytea not null
);

-- The roles of PostgreSQL that `penstock roles` has given the rights of a service. `penstock migrate` renews those rights, since a
-- release may bring tables and functions.
create table service_role (
    role text primary key,
    service text not null
);
