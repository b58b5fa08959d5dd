"""The settings of PostgreSQL that a role or a database may bring to each of its sessions."""

from __future__ import annotations

from collections.abc import Mapping

Settings = Mapping[str, str]

ISOLATION: dict[str, Settings] = {
    "repeatable read": {"default_transaction_isolation": "repeatable read"},
    "serializable": {"default_transaction_isolation": "serializable"},
    "deferrable": {
        "default_transaction_isolation": "serializable",
        "default_transaction_deferrable": "on",
    },
    "read only": {"default_transaction_read_only": "on"},
}
TEXT_FORMS: dict[str, Settings] = {
    "German dates": {"DateStyle": "German, DMY"},
    "SQL dates": {"DateStyle": "SQL, DMY", "TimeZone": "Australia/Sydney"},
    "Postgres dates": {"DateStyle": "Postgres, MDY", "TimeZone": "America/Sao_Paulo"},
    # IST is India's, Israel's and Ireland's. PostgreSQL reads it as Israel's.
    "ambiguous zone": {"DateStyle": "SQL, DMY", "TimeZone": "Asia/Kolkata"},
    # CST is China's and Chicago's. PostgreSQL reads it as Chicago's.
    "zone read as another": {"DateStyle": "Postgres, DMY", "TimeZone": "Asia/Shanghai"},
    "Indian abbreviations": {"TimeZone": "Asia/Kolkata", "timezone_abbreviations": "India"},
    "SQL intervals": {"IntervalStyle": "sql_standard"},
    "ISO intervals": {"IntervalStyle": "iso_8601"},
    "escaped bytes": {"bytea_output": "escape"},
    "short floats": {"extra_float_digits": "-15"},
    "backslashes": {
        "standard_conforming_strings": "off",
        "escape_string_warning": "off",
        "backslash_quote": "on",
    },
    "quoted names": {"quote_all_identifiers": "on"},
    "null is a word": {"array_nulls": "off"},
    "null equals null": {"transform_null_equals": "on"},
    "whole documents": {"xmloption": "document", "xmlbinary": "hex"},
}
TIMEOUTS: dict[str, Settings] = {
    "short statements": {"statement_timeout": "15ms"},
    "short locks": {"lock_timeout": "1ms"},
    "short transactions": {"idle_in_transaction_session_timeout": "5ms"},
    "short sessions": {"idle_session_timeout": "150ms"},
    "busy deadlock checks": {"deadlock_timeout": "1ms"},
}
PLANS: dict[str, Settings] = {
    "compiled": {
        "jit": "on",
        "jit_above_cost": "0",
        "jit_inline_above_cost": "0",
        "jit_optimize_above_cost": "0",
    },
    "generic plans": {"plan_cache_mode": "force_generic_plan"},
    "custom plans": {"plan_cache_mode": "force_custom_plan"},
    "no indexes": {"enable_indexscan": "off", "enable_indexonlyscan": "off", "enable_bitmapscan": "off"},
    "little memory": {"work_mem": "64kB", "hash_mem_multiplier": "1", "maintenance_work_mem": "1MB"},
    "no row security": {"row_security": "off"},
    "commits do not wait": {"synchronous_commit": "off"},
    "chatty": {"client_min_messages": "debug5"},
    "bodies are not checked": {"check_function_bodies": "off"},
    "no partition pruning": {
        "enable_partition_pruning": "off",
        "constraint_exclusion": "off",
        "enable_partitionwise_join": "on",
        "enable_partitionwise_aggregate": "on",
    },
}
SEARCH_PATHS: dict[str, Settings] = {
    "nothing": {"search_path": ""},
    "elsewhere": {"search_path": '"No Such", pg_catalog'},
    "catalog last": {"search_path": "public, pg_catalog"},
}
SINCE: dict[int, dict[str, Settings]] = {
    14: {"parallel": {"force_parallel_mode": "on", "parallel_setup_cost": "0", "parallel_tuple_cost": "0"}},
    16: {"parallel": {"debug_parallel_query": "on", "parallel_setup_cost": "0", "parallel_tuple_cost": "0"}},
    17: {"transaction timeout": {"transaction_timeout": "15ms"}},
}
"""Surroundings that exist from this major version on. A later version's surrounding replaces the one of the same name."""


def since(major: int) -> dict[str, Settings]:
    """Return the surroundings of this major version that are not in every one."""
    return {name: them for at, named in SINCE.items() if at <= major for name, them in named.items()}


def alone(major: int) -> dict[str, Settings]:
    """Return each surrounding of this major version by its name."""
    return {**ISOLATION, **TEXT_FORMS, **TIMEOUTS, **PLANS, **SEARCH_PATHS, **since(major)}


def _merged(*named: Settings) -> Settings:
    merged: dict[str, str] = {}
    for settings in named:
        merged |= settings
    return merged


COMBINED: dict[str, Settings] = {
    "stale snapshots, foreign texts": _merged(
        ISOLATION["serializable"],
        TEXT_FORMS["ambiguous zone"],
        TEXT_FORMS["SQL intervals"],
        TEXT_FORMS["escaped bytes"],
        TEXT_FORMS["short floats"],
        TEXT_FORMS["backslashes"],
        TEXT_FORMS["quoted names"],
        TEXT_FORMS["null is a word"],
        TEXT_FORMS["null equals null"],
        TEXT_FORMS["whole documents"],
        SEARCH_PATHS["elsewhere"],
    ),
    "read only, impatient": _merged(ISOLATION["read only"], *TIMEOUTS.values(), SEARCH_PATHS["catalog last"]),
    "unlucky plans": _merged(
        ISOLATION["repeatable read"],
        TEXT_FORMS["German dates"],
        PLANS["generic plans"],
        PLANS["no indexes"],
        PLANS["little memory"],
        PLANS["no row security"],
        PLANS["no partition pruning"],
        PLANS["bodies are not checked"],
        SEARCH_PATHS["nothing"],
    ),
}
"""The surroundings of `make test`. None of a combination hides another: they concern different parts of a session."""
