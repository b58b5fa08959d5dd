-- The tokens of the HTTP API, and their rights. Only the SHA-256 of a token's secret is kept. A null `tenants` means all tenants.
create table api_token (
    id uuid primary key,
    name text not null unique,
    digest bytea not null unique,
    scopes text[] not null,
    tenants text[] not null default '{}',
    created_by text not null,
    created_at timestamptz not null default clock_timestamp(),
    expires_at timestamptz
);

-- Addresses below /hooks that other programs call, and what becomes of their calls: events of `trigger`. `secret` signs or
-- accompanies each call, as `signature` says. `header`: where a plain secret stands; `key_header`: what tells a copy;
-- `payload`: the template of the event's payload, if it is not the body itself.
create table webhook (
    name text primary key,
    trigger text not null,
    tenant text not null,
    signature text not null,
    secret text not null,
    header text,
    key_header text,
    payload jsonb,
    created_by text not null,
    created_at timestamptz not null default clock_timestamp()
);

-- Changes over HTTP, with their author and reason. Starts and events are not here: they have their origin in their own rows.
create table audit (
    id bigint generated always as identity primary key,
    at timestamptz not null default clock_timestamp(),
    by text not null,
    operation text not null,
    target text not null,
    reason text
);
create index audit_at on audit (at);

-- The roles of PostgreSQL that `penstock roles` has given the rights of a service. `penstock migrate` renews those rights, since a
-- release may bring tables and functions.
create table service_role (
    role text primary key,
    service text not null
);
