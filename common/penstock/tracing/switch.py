"""The switch of tracing: a process traces if OpenTelemetry's standard variables say so, and `penstock[tracing]` is
installed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec

import structlog

log = structlog.get_logger()

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def is_asked_for(variables: Mapping[str, str] = os.environ) -> bool:
    """An exporter was named (OTEL_TRACES_EXPORTER) or, where none was, somewhere to send to; and nothing switches it off
    (OTEL_SDK_DISABLED, `none`)."""
    if variables.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = variables.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    return exporter != "none" if exporter else any(variables.get(name) for name in ENDPOINTS)


def is_installed() -> bool:
    """Looks, without importing anything."""
    return all(_is_there(name) for name in ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"))


def is_switched_on() -> bool:
    """Says so in the log where it is asked for and cannot be."""
    if not is_asked_for():
        return False
    if not is_installed():
        log.warning("tracing.not_installed", hint="Install penstock[tracing], or set OTEL_SDK_DISABLED=true.")
        return False
    return True


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of a package above it
        return False
