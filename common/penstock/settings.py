"""Every setting, with its default and its unit. Read once, in `main`, from PENSTOCK_* variables, and passed down."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from penstock.errors import ConfigurationError
from penstock.language import labels as labels_


def _identifier(value: str) -> str:
    if not value.replace("_", "").replace(".", "").replace("-", "").isalnum():
        raise ValueError("letters, digits, '_', '-' and '.' only")
    return value


Identifier = Annotated[str, Field(min_length=1, max_length=63), AfterValidator(_identifier)]
Seconds = Annotated[float, Field(gt=0)]
LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""Addresses that only this machine reaches."""


def is_tls_or_local(address: str) -> bool:
    """Whether nobody between can read or change what is sent there: over TLS, or on this machine."""
    parts = urlsplit(address)
    local = parts.scheme == "http" and parts.hostname in LOOPBACK
    return local or (parts.scheme == "https" and bool(parts.hostname))


class Settings(BaseSettings):
    """Settings of every service. The unit of every duration is the second."""

    model_config = SettingsConfigDict(env_prefix="PENSTOCK_", frozen=True, extra="forbid")

    database_url: SecretStr | None = None
    """PostgreSQL, several hosts and TLS parameters allowed. Unset: the embedded server of this folder."""
    database_read_url: SecretStr | None = None
    """A standby, from which the API reads its lists, its overview and its live stream. Unset, or while it is away: as above."""
    database_schema: Identifier = "public"
    database_pooler: bool = False
    """True behind a transaction pooler such as PgBouncer: no session state, no named statements, no LISTEN."""
    database_connections: int = Field(default=4, ge=2, le=1000)
    """Connections to PostgreSQL that all parts of a process share, at the most. Beside them it has one for its heartbeat and,
    where PostgreSQL carries the messages, one that listens."""
    broker_url: SecretStr | None = None
    """RabbitMQ, as amqp(s)://; several, separated by commas. Unset: PostgreSQL carries the messages too."""
    prefix: Identifier = "penstock"
    """Of every queue and exchange on the broker, so that installations can share one."""
    declare_topology: bool = True
    """False where the user may not configure the broker: queues are checked, not declared."""

    name: Identifier = Field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}")
    """What people call this process, in logs, history and `penstock workers list`."""
    port: int = Field(default=0, ge=0, le=65535)
    """Of /live, /ready and /metrics. 0: any free one (said in the log); see `host`."""
    host: str = "127.0.0.1"
    log_level: str = "info"
    log_format: str = "auto"
    """json, console, or auto: console on a terminal."""
    trace_url: str | None = None
    """Where a trace is shown, for links: https://tempo.example/trace/{trace_id}. Unset: its id is shown alone."""

    api_host: str = "127.0.0.1"
    """Address of the HTTP API."""
    api_port: int = Field(default=8000, ge=0, le=65535)
    """Of the HTTP API. 0: any free one (said in the log)."""
    api_address: str | None = None
    """How browsers reach the API: https://penstock.example.org. Unset: as `api_host` says, without TLS on a loopback address
    alone."""
    api_access: Literal["token", "open"] = "token"
    """token: nothing without one. open: everything for anybody, on a loopback address alone."""

    oidc_issuer: str | None = None
    """The OpenID Connect provider that people sign in with, as it calls itself. Needs the next two, and `api_address`."""
    oidc_client_id: str | None = None
    oidc_client_secret: SecretStr | None = None
    oidc_scopes: str = "profile email"
    """What is asked of it beside `openid`, separated by spaces."""
    oidc_name_claim: str = "email"
    """The claim that names a user here. An `email` has to be verified; of others, take none that people choose themselves."""
    oidc_roles_claim: str = "groups"
    """The claim, or the path to it (`realm_access.roles`), whose values `oidc_roles` maps."""
    oidc_roles: dict[str, str] = Field(default_factory=dict)
    """Roles by value of that claim, as JSON: {"ops": "operator", "acme-dev": "viewer, developer:acme"}. What follows the colon is
    a tenant; without one it is all of them. Who has nothing that is mapped is not let in."""

    secrets_key: SecretStr | None = None
    """Master keys of the secrets store, separated by commas, the newest first: 32 random bytes each, in base64."""
    secrets_key_file: Path | None = None
    """A file that holds them instead, one a line."""
    secrets_kms: str | None = None
    """`module:name` of a key service instead of these: see docs/secrets.md."""

    batch: int = Field(default=500, ge=1, le=5000)
    """Items that a handler takes in one transaction at the most."""
    prefetch_bytes: int = Field(default=16 * 1024 * 1024, ge=1024)
    """Bytes of messages that a consumer of a queue holds at the most, and one message more."""
    payload_cap: int = Field(default=256 * 1024, ge=1024)
    """Bytes of a payload, of parameters, and of a result in the database at the most."""
    result_store: str | None = None
    """Where results go that are larger, as a URL that fsspec takes: s3://bucket/prefix. Workers and clients have the same. Unset:
    they are refused."""
    result_store_cap: int = Field(default=256 * 1024 * 1024, ge=1024)
    """Bytes of a result there at the most."""
    suspend_after: float = Field(default=1.0, ge=0, le=60)
    """Seconds that a durable function stays on its worker while it waits for a step that may end soon. After that, or where its
    slot is needed, it gives its slot back, and goes on later where it was."""
    max_workflow_depth: int = Field(default=20, ge=1, le=1000)
    """How many workflows may run inside one another, the outermost counted."""

    concurrency: int = Field(default=32, ge=1, le=10_000)
    """Executions that a worker runs at once."""
    modules: str = ""
    """What a worker runs: Python modules or files, or folders of YAML packs, separated by commas."""
    executors: dict[str, dict[str, Any] | None] = Field(default_factory=dict)
    """Options of a worker's task executors by name, as JSON: {"process": {"memory_limit": 1073741824}, "http": null}.
    null leaves one out; one of your own has a "class"."""
    route_executors: dict[str, str] = Field(default_factory=dict)
    """Which task executor runs what comes by a route and asks for none, as JSON: {"heavy": "process"}."""
    known_routes: str = ""
    """All routes there are, separated by commas: definitions that name another are refused. Empty: any will do."""
    routes: str = "default"
    """Routes that a worker serves, separated by commas."""
    labels: str = ""
    """What a worker has that actions may ask for: `gpu=a100,zone=eu`."""
    grace: Seconds = 30.0
    """How long a draining worker lets its work finish; how long cancelled work may take to end."""

    wait: Seconds | None = None
    """How long a service that starts waits for its servers; then it ends with exit code 3. Unset: until they are there."""
    heartbeat_interval: Seconds = 10.0
    stale_threshold: Seconds = 60.0
    """Without the database for this long, from the first heartbeat on that does not come through, a process ends its own work;
    soon after that, others have it (`lost_after`). One that was killed is noticed within seconds, by its session."""
    sweep_interval: Seconds = 30.0
    """How often to look for slots and attempts that nobody looks after any more."""
    relay_interval: Seconds = 5.0
    """How often the relay looks for messages that were not confirmed."""
    relay_age: Seconds = 5.0
    """A staged message older than this was not published by the process that staged it."""
    restage_age: Seconds = 60.0
    """Work that is requested or scheduled for this long without moving is staged again, if no message of it waits."""
    schedule_to_start: Seconds | None = None
    """What no worker has claimed for this long ends as timeout, where its action says nothing else. Unset: it waits."""
    poll_interval: Seconds = 5.0
    """PostgreSQL transport: how often to look for messages when no wake-up comes."""
    lease: Seconds = 60.0
    """PostgreSQL transport: a delivery that is not settled for this long comes again."""
    queue_type: Literal["quorum", "classic"] = "quorum"
    """Of RabbitMQ's queues. Classic ones are quicker, not replicated, and know no delivery limit."""
    delivery_limit: int = Field(default=20, ge=1)
    """Deliveries of a message after which it is a dead letter."""

    archive_after: Seconds = 3600.0
    """Finished executions are moved to the archive this long after they ended."""
    archive_retention_days: int = Field(default=90, ge=1)
    history_retention_days: int = Field(default=30, ge=1)
    event_retention_days: int = Field(default=30, ge=1)
    log_retention_days: int = Field(default=30, ge=1)
    fire_retention_days: int = Field(default=30, ge=1)
    key_retention_days: int = Field(default=30, ge=1)
    """How long idempotency keys and message ids are remembered."""
    dead_letter_retention_days: int = Field(default=90, ge=1)
    """Counted from when a dead letter came the last time."""
    private_subscribers: str = ""
    """Host names, addresses and networks that subscriptions may call though they are private, separated by commas."""
    export_folder: Path | None = None
    """Where a day is written to before it is dropped. Unset: nowhere."""
    export_format: Literal["jsonl", "parquet"] = "jsonl"

    @field_validator(
        *("database_url", "database_read_url", "broker_url", "export_folder", "schedule_to_start", "wait"),
        *("oidc_issuer", "oidc_client_id", "oidc_client_secret"),
        *("trace_url", "api_address", "secrets_key", "secrets_key_file", "secrets_kms"),
        mode="before",
    )
    @classmethod
    def _empty_is_unset(cls, value: object) -> object:
        return None if value == "" else value

    @field_validator("trace_url")
    @classmethod
    def _leads_to_a_trace(cls, value: str | None) -> str | None:
        if value is not None and not (value.startswith(("http://", "https://")) and "{trace_id}" in value):
            raise ValueError("should be an http(s) address with {trace_id} in it")
        return value

    @field_validator("routes")
    @classmethod
    def _names_a_route(cls, value: str) -> str:
        if not value.replace(",", " ").strip():
            raise ValueError("names no route; leave it out for the route `default`")
        return value

    @field_validator("labels")
    @classmethod
    def _are_labels(cls, value: str) -> str:
        labels_.parse_labels(value)
        return value

    @model_validator(mode="after")
    def _open_to_this_machine_alone(self) -> Self:
        if self.api_access == "open" and self.api_host not in LOOPBACK:
            raise ValueError(
                f"api_access is open, and api_host ({self.api_host}) is no loopback address: anybody who reaches it could "
                "do anything. Leave api_access out, and make tokens with `penstock tokens create`"
            )
        return self

    @model_validator(mode="after")
    def _knows_its_provider(self) -> Self:
        if self.oidc_issuer is not None:
            if not is_tls_or_local(self.oidc_issuer):
                raise ValueError("oidc_issuer should be an https address: what it says is believed")
            for name in ("oidc_client_id", "oidc_client_secret", "api_address"):
                if getattr(self, name) is None:
                    raise ValueError(f"oidc_issuer is set, and {name} is not: the provider asks for it")
        return self

    @model_validator(mode="after")
    def _relations(self) -> Self:
        if self.stale_threshold < 3 * self.heartbeat_interval:
            raise ValueError(
                f"stale_threshold ({self.stale_threshold:g} s) must be at least 3 x heartbeat_interval "
                f"({self.heartbeat_interval:g} s): one lost heartbeat must not cost a worker its work"
            )
        if self.sweep_interval >= self.stale_threshold:
            raise ValueError(
                f"sweep_interval ({self.sweep_interval:g} s) must be below stale_threshold "
                f"({self.stale_threshold:g} s)"
            )
        return self

    @property
    def silent_after(self) -> float:
        """Seconds after the first heartbeat that does not come through at which a process ends its own work: an outage of
        the database that is shorter than `stale_threshold`, and the way back, cost it nothing."""
        return self.stale_threshold + self.heartbeat_interval / 2

    @property
    def lost_after(self) -> float:
        """Seconds after the last heartbeat at which others have the work of a process: the one that did not come through was
        due an interval after it, and it has half an interval to end its work."""
        return self.stale_threshold + 2 * self.heartbeat_interval

    @property
    def silence(self) -> float:
        """Seconds without any heartbeat of anybody after which the database or the network was away."""
        return self.stale_threshold / 2

    @property
    def most_connections(self) -> int:
        """Connections to PostgreSQL that a service may have: those that it shares, its heartbeat's, the one that listens."""
        listens = self.broker_url is None and not self.database_pooler
        return self.database_connections + 1 + listens

    @property
    def transport(self) -> str:
        return "rabbitmq" if self.broker_url else "postgres"


def load(**overrides: object) -> Settings:
    """The settings of the environment. Raises ConfigurationError that names what is wrong."""
    given = {name: value for name, value in overrides.items() if value is not None}
    known = {f"PENSTOCK_{name.upper()}" for name in Settings.model_fields}
    ours = [name for name in os.environ if name.startswith("PENSTOCK_") and not name.startswith(TESTS)]
    unknown = [name for name in ours if name not in known | FOREIGN]
    if unknown:
        raise ConfigurationError(
            f"unknown setting {', '.join(sorted(unknown))}",
            hint="See docs/configuration.md for every setting, or unset it.",
        )
    try:
        return Settings(**given)  # type: ignore[arg-type]
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, e['loc'])) or 'settings'}: {e['msg']}" for e in error.errors()]
        raise ConfigurationError("; ".join(lines), hint="See docs/configuration.md.") from None


TESTS = "PENSTOCK_TEST_"
"""What the tests' own variables begin with."""
FOREIGN = frozenset(
    f"PENSTOCK_{name}"
    for name in (
        *("HOME", "TEST_DATABASE_URL", "TEST_BROKER_URL"),
        *("SERVER", "TOKEN", "PROFILE", "PLAIN_HTTP"),
        *("EXECUTION_ID", "ATTEMPT", "MAX_ATTEMPTS", "NAMESPACE", "ACTION"),
        *("IDEMPOTENCY_TOKEN", "ATTEMPT_TOKEN"),
        *("TIMEOUT", "PARAMS", "CONTEXT", "ROOT_ID", "WORKFLOW_ID", "TASK"),
    )
)
"""Variables that begin like settings and are not: the embedded server's folder, the tests', the command line's, a command
action's."""
