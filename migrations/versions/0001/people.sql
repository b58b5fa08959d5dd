-- Users of the API with a password (argon2id) and a session. A role holds for a tenant, or (an empty one) for all.
-- A second factor (TOTP) counts since `totp_since`; its secret is sealed in `secret`, and no code of `totp_step` or before is good.
create table person (
    id uuid primary key,
    name text not null unique,
    password text not null,
    created_by text not null,
    created_at timestamptz not null default clock_timestamp(),
    totp_since timestamptz,
    totp_step bigint not null default 0
);

-- Codes that stand in for a lost second factor, once each. Only their SHA-256 is kept.
create table recovery_code (
    person uuid not null references person (id) on delete cascade,
    digest bytea not null,
    primary key (person, digest)
);

create table person_role (
    person uuid not null references person (id) on delete cascade,
    role text not null,
    tenant text not null default '',
    primary key (person, role, tenant)
);

-- Of the secret in a person's cookie only its SHA-256 is kept. `id` names the session to its owner; `address` and `browser` say where
-- it began. One that `needs_code` grants no access: its password was right, and the code of the second factor is still to come.
-- `id_token`: what the identity provider said of the person, which it asks for when the person signs out.
create table person_session (
    digest bytea primary key,
    id uuid not null unique default gen_random_uuid(),
    person uuid not null references person (id) on delete cascade,
    created_at timestamptz not null default clock_timestamp(),
    seen_at timestamptz not null default clock_timestamp(),
    expires_at timestamptz not null,
    address text not null default '',
    browser text not null default '',
    needs_code boolean not null default false,
    id_token text
);
create index person_session_person on person_session (person);

-- Addresses from which a person has logged in. Failures of others with that name do not keep the person out from there.
create table known_address (
    person uuid not null references person (id) on delete cascade,
    address text not null,
    seen_at timestamptz not null default clock_timestamp(),
    primary key (person, address)
);

-- Log-ins that failed of late, or are under way: so many of a name or an address, and the next one has to wait.
create table login_failure (
    id uuid primary key,
    at timestamptz not null default clock_timestamp(),
    name text not null,
    address text not null
);
create index login_failure_name on login_failure (name, at);
create index login_failure_address on login_failure (address, at);
