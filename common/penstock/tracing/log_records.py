"""The export of log records with OTLP, to the collector in OTEL_EXPORTER_OTLP_LOGS_ENDPOINT or
OTEL_EXPORTER_OTLP_ENDPOINT."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from penstock.errors import ConfigurationError, ConnectionFailed

ENDPOINTS = ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


@dataclass(frozen=True, slots=True)
class Line:
    """A log record: its instant, its text, and its attributes."""

    at: datetime
    body: str
    attributes: Mapping[str, str | int]


class LogSender:
    """A sender of log records. Raises ConfigurationError if the environment names no collector."""

    def __init__(self, scope: str) -> None:
        if not any(os.environ.get(name) for name in ENDPOINTS):
            raise ConfigurationError(
                "there is no collector to send to",
                hint="Set OTEL_EXPORTER_OTLP_ENDPOINT, such as http://localhost:4318.",
            )
        self._exporter = OTLPLogExporter()
        self._resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", "penstock")})
        self._scope = InstrumentationScope(scope)

    def send(self, lines: Sequence[Line]) -> None:
        """Send records, and wait until the collector has accepted them. Raises ConnectionFailed if the collector does
        not accept them."""
        records = [
            ReadableLogRecord(
                LogRecord(
                    timestamp=_nanoseconds(line.at),
                    observed_timestamp=_nanoseconds(line.at),
                    severity_text="INFO",
                    severity_number=SeverityNumber.INFO,
                    body=line.body,
                    attributes=dict(line.attributes),
                ),
                self._resource,
                self._scope,
            )
            for line in lines
        ]
        if self._exporter.export(records) is not LogRecordExportResult.SUCCESS:
            raise ConnectionFailed(
                "the collector has not taken the log records",
                hint="Check that OTEL_EXPORTER_OTLP_ENDPOINT is right and the collector accepts logs. Then send them again.",
            )

    def close(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]


def _nanoseconds(at: datetime) -> int:
    return int(at.replace(microsecond=0).timestamp()) * 1_000_000_000 + at.microsecond * 1_000
