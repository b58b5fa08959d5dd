-- A token of the HTTP API, and its rights. Of its secret only the SHA-256 is kept. A null `tenants` means all tenants. After
-- a rotation the former secret (`old_digest`) is valid until `old_until`. `used_at` is written at most once in ten minutes.
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

-- A webhook: an address below /hooks that other programs call. Each call becomes an event of `trigger`. `signature` names the
-- scheme that verifies a call with the row `webhook:NAME` of `secret`. `header`: the HTTP header that carries a plain secret.
-- `key_header`: the header that identifies repeated calls. `payload`: the template of the event's payload; null for the body
-- itself.
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

-- The audit: a row for each change by HTTP or command, written in the transaction of the change, and for each refused one.
-- Starts and events have no row: their own tables name their authors. `details` is JSON with sorted keys. `role` is the role
-- of the session that wrote the row. `seal_audit` gives rows their place in the chain: `seal` is the hash of `previous` (the
-- seal of the row before) and the row.
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

-- The two ends of the audit's chain, in one row. Rows up to `dropped_position` were deleted after their retention.
create table audit_chain (
    only_row boolean primary key default true check (only_row),
    position bigint not null,
    seal bytea not null,
    dropped_position bigint not null,
    dropped_seal bytea not null
);

-- A role of PostgreSQL that `penstock roles` has granted the rights of a service. `penstock migrate` grants them again, since
-- a release may add tables and functions.
create table service_role (
    role text primary key,
    service text not null
);
