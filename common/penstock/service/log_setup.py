"""The logs of services: one line for each event, as docs/reference/logs.md describes, JSON or for people, on standard
error."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

import structlog
from structlog.typing import EventDict, Processor

from penstock.language.terms.redaction import LIVE
from penstock.language.terms.visible_text import visible
from penstock.run.context import CURRENT
from penstock.service.process_secrecy import credentials
from penstock.settings import Settings
from penstock.tracing import trace_of


def configure_logging(settings: Settings, **bound: str) -> None:
    """Configure the logs of this process and of its libraries. Each line names the process (`bound`, and its name)
    and the run that logs it."""
    people = settings.log_format == "console" or (settings.log_format == "auto" and sys.stderr.isatty())
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    named = {} if settings.runner_name is None else {"runner_name": settings.runner_name}
    fields = {"replica": settings.name, **named, **bound}

    def of_this_process(_: Any, __: str, line: EventDict) -> EventDict:
        # A library's thread does not have the context variables that hold these fields.
        return {**fields, **line}

    renderer: Processor = (
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
        if people
        else structlog.processors.JSONRenderer()
    )
    LIVE.hide(credentials(settings))
    # Values are masked before they are quoted. The whole line is masked again, since its traceback is formatted last.
    processors: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        of_this_process,
        of_its_run,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        masked_values,
        *((visible_values,) if people else ()),
    ]
    structlog.configure(
        processors=[*processors, renderer, masked],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(**fields)
    for noisy in ("aiormq", "aio_pika"):  # they print tracebacks for losses that the transport reports itself
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*processors, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer, masked],
        )
    )
    logging.basicConfig(level=max(level, logging.WARNING), handlers=[handler])


def masked_values(_: Any, __: str, line: EventDict) -> EventDict:
    """Return the line with the secrets of this process masked in its values."""
    return {name: _each_text(LIVE.mask, value) for name, value in line.items()}


def visible_values(_: Any, __: str, line: EventDict) -> EventDict:
    """Return the line with control characters in its values made visible, so that no value controls the terminal. The
    renderer adds its own colours afterwards."""
    return {visible(name): _each_text(visible, value) for name, value in line.items()}


def _each_text(change: Callable[[str], str], value: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return [_each_text(change, item) for item in value]
    if isinstance(value, dict):
        return {_each_text(change, name): _each_text(change, item) for name, item in value.items()}
    return value


def masked(_: Any, __: str, line: Any) -> Any:
    """Return a formatted line with the secrets of this process masked."""
    return LIVE.mask(line)


def of_its_run(_: Any, __: str, line: EventDict) -> EventDict:
    """Return the line with the ids of the run that logs it. The ids are only looked up if a line is logged."""
    run = CURRENT.get()
    if run is None:
        return line
    if run.items is not None:  # the call of a batch belongs to no single execution
        return {"action": run.event.action, **line}
    event, trace = run.event, trace_of(run.trace)
    ids = {"execution_id": str(event.execution_id), "attempt": event.attempt, "action": event.action}
    return {**ids, **({"trace_id": trace.hex} if trace is not None else {}), **line}
