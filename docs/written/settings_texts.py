"""The texts of docs/configuration.md beside the docstrings of the settings."""

from __future__ import annotations

HEAD = """# Configuration

This page is written by `docs/written` from `common/penstock/settings.py`. All settings are environment variables. Each process
reads them once, at its start. An unknown variable `PENSTOCK_...` is an error, so a misspelled setting is not ignored. An empty variable
counts as unset. If no variable is set, `penstock dev` runs all of Penstock on an embedded PostgreSQL in the folder `.penstock`.

Durations are seconds, and may have a fraction. All executors and workers of an installation need the same values, except for the settings
under *This process* and *Worker*.

"""
SECTIONS = {
    "Servers": (
        *("database_url", "database_read_url", "database_schema", "database_pooler"),
        *("database_connections", "broker_url", "prefix", "queue_type", "declare_topology"),
        "producers",
    ),
    "This process": (
        "name",
        "runner_id",
        "runner_name",
        "port",
        "host",
        "log_level",
        "log_format",
        "trace_url",
    ),
    "Metrics": ("metric_labels",),
    "API": (
        *("api_host", "api_port", "api_address", "trusted_proxies", "api_access"),
        *("oidc_issuer", "oidc_client_id", "oidc_client_secret", "oidc_scopes"),
        *("oidc_name_claim", "oidc_roles_claim", "oidc_roles"),
    ),
    "Secrets": ("secrets_key", "secrets_key_file", "secrets_kms"),
    "Worker": (
        *("modules", "known_routes", "routes", "labels", "concurrency"),
        *("executors", "route_executors", "grace"),
    ),
    "Sizes": (
        *("batch", "prefetch_bytes", "payload_cap", "result_store", "result_store_cap"),
        *("suspend_after", "max_workflow_depth"),
    ),
    "Recovery": (
        *("wait", "heartbeat_interval", "stale_threshold", "sweep_interval", "restage_age"),
        *(
            "schedule_to_start",
            "stuck_after",
            "relay_interval",
            "relay_age",
            "delivery_limit",
            "poll_interval",
            "lease",
        ),
    ),
    "Retention": (
        *("archive_after", "archive_retention_days", "history_retention_days", "event_retention_days"),
        *("log_retention_days", "fire_retention_days", "key_retention_days"),
        *("dead_letter_retention_days", "export_folder", "export_format"),
    ),
    "Subscriptions": ("private_subscribers",),
}
"""Settings by the heading that they stand under."""
SAID = {
    "Secrets": "If you use [secrets](secrets.md), set one of these variables to the same value for workers, the API and the command line:"
}
"""What is said of all that stand under a heading."""

SEE = {
    "database_url": "[clusters](how-to/clusters.md)",
    "database_read_url": "[reading from a standby](how-to/clusters.md#read-from-a-standby)",
    "broker_url": "[transports](transports.md)",
    "producers": "[who may publish](wire-format.md#who-may-publish)",
    "log_format": "[what lines hold](reference/logs.md)",
    "trace_url": "[traces](how-to/tracing.md)",
    "api_host": "[HTTP API](api.md)",
    "api_address": "[behind a proxy](api.md#behind-a-proxy)",
    "trusted_proxies": "[behind a proxy](api.md#behind-a-proxy)",
    "api_access": "[access](api.md#access)",
    "oidc_issuer": "[single sign-on](how-to/single-sign-on.md)",
    "secrets_kms": "[how they are kept](secrets.md#how-they-are-kept)",
    "result_store": "[large results](how-to/large-results.md)",
    "suspend_after": "[durable functions](durable.md)",
    "executors": "[task executors](task-executors.md)",
    "labels": "[workers](workers.md)",
    "metric_labels": "[metrics by label](metrics.md#by-label)",
    "schedule_to_start": "[times](timeouts.md)",
    "stuck_after": "[alerts from events](how-to/alerts-from-events.md)",
    "export_folder": "[recovery](recovery.md)",
    "private_subscribers": "[subscriptions](subscriptions.md)",
}
"""Where more is said."""

FOOT = """## The command line

Only commands read these variables:

| variable | what it is |
|---|---|
| `PENSTOCK_SERVER` | The [API that commands call](api.md#the-command-line-and-python-over-http) instead of the database, as `penstock --server` does. |
| `PENSTOCK_TOKEN` | The token for this API. |
| `PENSTOCK_PROFILE` | The name of a profile in `~/.config/penstock/profiles.toml`, with a server and a token, as in `penstock --profile`. |
| `PENSTOCK_PLAIN_HTTP` | `1`: commands may call a server on another machine without TLS. |

## Not settings

| variable | what it is |
|---|---|
| `PENSTOCK_HOME` | The folder of the embedded server, for `penstock dev` and `penstock demo` and for the commands and clients that use this server. The default is `.penstock` in the current folder. |
| `PENSTOCK_TEST_DATABASE_URL`, `PENSTOCK_TEST_BROKER_URL` | The servers for `make test`. By default, the tests start private servers. |
| `PENSTOCK_TEST_POSTGRES_BIN`, `PENSTOCK_TEST_RABBITMQ_SCRIPT` | The `bin` folder of a PostgreSQL and the path of a `rabbitmq-server`, from which `make test` starts its private servers. Use them to test with other versions. Penstock ignores all other variables `PENSTOCK_TEST_...`. |

A program that an action runs has these variables in its environment ([task executors](task-executors.md)):
`PENSTOCK_ACTION`, `PENSTOCK_ATTEMPT`, `PENSTOCK_ATTEMPT_TOKEN`, `PENSTOCK_CONTEXT`, `PENSTOCK_EXECUTION_ID`,
`PENSTOCK_IDEMPOTENCY_TOKEN`, `PENSTOCK_MAX_ATTEMPTS`, `PENSTOCK_NAMESPACE`, `PENSTOCK_PARAMS`, `PENSTOCK_ROOT_ID`,
`PENSTOCK_TASK`, `PENSTOCK_TIMEOUT`, `PENSTOCK_WORKFLOW_ID`.

Retries, timeouts, limits and the route of an action are options of the action, and not settings.
`penstock doctor` checks the installation with these settings, and says what to correct.
"""
