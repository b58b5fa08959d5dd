"""The settings of Celery by their present names. Their old names are in capitals, with a prefix."""

from __future__ import annotations

_TASKS = (
    "acks_late acks_on_failure acks_on_failure_or_timeout acks_on_timeout allow_error_cb_on_chord_header "
    "always_eager annotations compression "
    "create_missing_queues default_delivery_mode default_exchange default_exchange_type default_priority default_queue "
    "default_queue_type default_rate_limit default_routing_key eager_propagates ignore_result inherit_parent_priority "
    "protocol publish_retry publish_retry_policy queue_ha_policy queue_max_priority queues reject_on_worker_lost "
    "remote_tracebacks retry_on_worker_lost routes send_sent_event serializer soft_time_limit store_eager_result "
    "store_errors_even_if_ignored time_limit track_started"
)
_PREFIXES = (
    "beat_", "broker_", "cache_", "control_", "couchbase_", "database_", "elasticsearch_", "event_", "mongodb_", "redis_",
    "result_", "s3_", "security_", "task_", "worker_", "arangodb_", "azureblockblob_", "cassandra_", "cosmosdbsql_",
    "couchdb_", "dynamodb_", "filesystem_", "gcs_", "riak_", "sqlalchemy_",
)  # fmt: skip
_PLAIN = frozenset(
    {
        "accept_content",
        "enable_utc",
        "imports",
        "include",
        "timezone",
        "deprecated_settings",
        "events_logfile",
    }
)
TASK_SETTINGS = frozenset(f"task_{name}" for name in _TASKS.split())
_OLD = ("CELERY_", "CELERYD_", "CELERYBEAT_", "BROKER_")
_OLD_NAMES = {
    "CELERYD_TASK_TIME_LIMIT": "task_time_limit",
    "CELERYD_TASK_SOFT_TIME_LIMIT": "task_soft_time_limit",
    "CELERY_TASK_TIME_LIMIT": "task_time_limit",
    "CELERY_TASK_SOFT_TIME_LIMIT": "task_soft_time_limit",
    "CELERY_ACKS_LATE": "task_acks_late",
    "CELERY_ANNOTATIONS": "task_annotations",
    "CELERY_DEFAULT_QUEUE": "task_default_queue",
    "CELERY_DEFAULT_RATE_LIMIT": "task_default_rate_limit",
    "CELERY_QUEUES": "task_queues",
    "CELERY_ROUTES": "task_routes",
    "CELERYBEAT_SCHEDULE": "beat_schedule",
}
MAPPED = frozenset(
    {"beat_schedule", "task_acks_late", "task_annotations", "task_default_queue", "task_default_rate_limit"}
    | {"task_routes", "task_time_limit", "timezone"}
)
"""The settings that are mapped, by their present names."""
_OLD_OF_MAPPED = frozenset(
    {"CELERYBEAT_SCHEDULE", "CELERYD_TASK_TIME_LIMIT", "CELERY_ACKS_LATE", "CELERY_ANNOTATIONS"}
    | {"CELERY_DEFAULT_QUEUE", "CELERY_DEFAULT_RATE_LIMIT", "CELERY_ROUTES", "CELERY_TIMEZONE"}
)
NAMES_OF_MAPPED = _OLD_OF_MAPPED | {f"CELERY_{name.upper()}" for name in MAPPED}
"""The mapped settings by their capital names in a module of settings. An application reads only some of them."""
_ADVICE = {
    "beat_schedule_filename": "Nothing is to be done: schedules are rows of PostgreSQL.",
    "beat_schedule": "Write each entry as a schedule.",
    "beat_cron_starting_deadline": "Write `missed` and `grace` of the schedules: they say what a late start does.",
    "beat_scheduler": "Where it reads schedules of a database, write those as schedules.",
    "beat_": "Nothing is to be done: executors start what is due, without a process of its own.",
    "broker_": "Give PENSTOCK_BROKER_URL, or let PostgreSQL be the transport.",
    "result_": "Results are kept in PostgreSQL.",
    "worker_": "See the settings of the worker in docs/configuration.md.",
    "task_ignore_result": "Results are kept in any case.",
    "task_track_started": "Nothing is to be done: an execution is `running` as soon as a worker has it.",
    "task_send_sent_event": "Nothing is to be done: each start is a row.",
    "task_serializer": "Parameters and results are JSON.",
    "task_store_errors_even_if_ignored": "Errors are kept in any case.",
    "task_always_eager": "Call functions themselves in tests, or use `penstock.testing`.",
    "task_": "Write it of the actions that are meant.",
    "event_": "Events are kept in PostgreSQL.",
    "accept_content": "Parameters and results are JSON.",
    "enable_utc": "Schedules are in UTC here where no zone is named, and not in that of the machine: write `timezone` of them.",
    "timezone": "Write `timezone` of the schedules.",
    "time_zone": "Write `timezone` of the schedules.",
    "imports": "Name the modules with `--module`.",
    "include": "Name the modules with `--module`.",
}


def is_read(name: str, namespace: bool, old: bool) -> bool:
    """Return whether an application reads a name of a module of settings, as far as the setting is mapped. With
    `namespace`, it reads present names behind `CELERY_`. With `old`, it reads the names of old versions."""
    if not name.isupper() or today(name) not in MAPPED:
        return True
    return (old and name in _OLD_OF_MAPPED) or (namespace and name == f"CELERY_{today(name).upper()}")


def is_setting(name: str, plain: bool = False) -> bool:
    """Return whether a name is a Celery setting: in capitals with a prefix, or, with `plain`, by its present name."""
    if name.isupper():
        return name.startswith(_OLD)
    return plain and (name in _PLAIN or name.startswith(_PREFIXES))


def today(name: str) -> str:
    """Return the present name of a setting: `task_routes` for `CELERY_TASK_ROUTES` and `CELERY_ROUTES`."""
    if name in _OLD_NAMES:
        return _OLD_NAMES[name]
    if name.startswith("CELERY_"):
        return name.removeprefix("CELERY_").lower()
    return name.lower()


def advice_of(name: str) -> str:
    """Return the work by hand for a setting."""
    named = today(name)
    if name.isupper() and not named.startswith(tuple(_ADVICE)) and named not in _ADVICE:
        named = f"task_{named}" if f"task_{named}" in TASK_SETTINGS else named
        for old, prefix in (("CELERYD_", "worker_"), ("CELERYBEAT_", "beat_")):
            named = prefix + name.removeprefix(old).lower() if name.startswith(old) else named
    if named in _ADVICE:
        return _ADVICE[named]
    if named.startswith(_PREFIXES) and not named.startswith(tuple(_ADVICE)):
        return "Nothing here reads it, as it is of a part of Celery that is not used here: leave it out."
    return next(
        (text for prefix, text in _ADVICE.items() if named.startswith(prefix)),
        "No setting of Celery that is known by this name: see whether something reads it.",
    )


OF_ANY = "See which settings it gives, and write them of the actions that are meant. It may give the zone of schedules, too."
"""The advice for settings with names that only running the code would tell."""
ZONES = frozenset({"CELERY_TIMEZONE", "timezone"})
ZONE_OF_DJANGO = "TIME_ZONE"
"""The name from which Celery reads the zone if no other name gives one."""
OF_ZONE = advice_of("timezone")
"""The advice of a gap about the zone of all schedules."""
OF_UTC = advice_of("enable_utc")
"""The advice of a gap about the zone of schedules that name none: UTC, or the zone of the machine."""
