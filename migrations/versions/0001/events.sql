-- An event: one occurrence of a trigger. `created_at` is the database's time.
create table event (
    id uuid not null,
    trigger text not null,
    tenant text not null,
    payload jsonb not null,
    source text,
    created_at timestamptz not null default now(),
    primary key (id, created_at)
) partition by range (created_at);

-- The W3C trace context (`traceparent`, `tracestate`) of a traced event.
create table event_trace (
    event_id uuid primary key,
    trace jsonb not null,
    created_at timestamptz not null default now()
);
create index event_trace_created on event_trace (created_at);

-- A message id that was seen, so that a repeated message stores no second event. The row outlives the event's partition, and
-- has its own retention.
create table event_key (
    tenant text not null,
    trigger text not null,
    source text not null,
    message_id text not null,
    event_id uuid not null,
    digest text not null,
    created_at timestamptz not null default now(),
    primary key (tenant, trigger, source, message_id)
);
create index event_key_created on event_key (created_at);

-- An enforcement: one rule matched one event, at most one row for each pair. `execution_id` is the id of the execution that
-- it creates.
create table enforcement (
    event_id uuid not null,
    rule text not null,
    definition_id integer not null,
    execution_id uuid not null unique,
    status text not null,
    namespace_id integer,
    action_definition_id integer,
    priority smallint not null default 0,
    params jsonb,
    options jsonb,
    error text,
    created_at timestamptz not null default now(),
    primary key (event_id, rule)
);
create index enforcement_created on enforcement (created_at);
-- For the list of rules that failed on events, which an operator has to see. The ids of events are in the order of time.
create index enforcement_failed on enforcement (event_id, rule) where error is not null;

-- An idempotency key of a client, and the execution that was started with it. `digest` identifies the request.
create table idempotency (
    tenant text not null,
    key text not null,
    execution_id uuid not null,
    digest text not null,
    created_at timestamptz not null default now(),
    primary key (tenant, key)
);
create index idempotency_created on idempotency (created_at);
