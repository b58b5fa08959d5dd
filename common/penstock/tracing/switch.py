"""The switch of tracing: a process traces if OpenTelemetry's standard variables request it, and `penstock[tracing]`
is installed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec

import structlog

log = structlog.get_logger()

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def is_asked_for(variables: Mapping[str, str] = os.environ) -> bool:
    """Return True if an exporter (OTEL_TRACES_EXPORTER) or, without one, an endpoint is set, and nothing switches
    tracing off (OTEL_SDK_DISABLED, `none`)."""
    if variables.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = variables.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    return exporter != "none" if exporter else any(variables.get(name) for name in ENDPOINTS)


def is_installed() -> bool:
    """Return True if the packages are installed. They are not imported."""
    return all(_is_there(name) for name in ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"))


def is_switched_on() -> bool:
    """Return True if tracing is requested and installed. Log a warning if it is requested and not installed."""
    if not is_asked_for():
        return False
    if not is_installed():
        log.warning("tracing.not_installed", hint="Install penstock[tracing], or set OTEL_SDK_DISABLED=true.")
        return False
    return True


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a parent package is missing
        return False
