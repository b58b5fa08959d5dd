"""The traceback of a failed action, which shows the code of the action and leaves out the frames of Penstock around it."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from penstock.errors import StepFailed

OUR_PACKAGES = frozenset(
    {
        "penstock",
        "penstock_api",
        "penstock_dask",
        "penstock_executor",
        "penstock_import",
        "penstock_ray",
        "penstock_worker",
    }
)
CALLERS = frozenset({"asyncio", "concurrent", "contextlib", "multiprocessing", "threading"})
"""The packages of Python by which Penstock calls a function in another thread, task or process."""
CAUSED = "\nThe above exception was the direct cause of the following exception:\n\n"
DURING = "\nDuring handling of the above exception, another exception occurred:\n\n"


def traceback_text(error: BaseException) -> str:
    """Return the traceback of an error with its causes, as Python prints it, without the frames of Penstock. A failed step
    has the traceback of its function as its cause. Where no frame but ours is left, all frames stay: the fault is ours."""
    links = list(_links(error))
    is_ours = not any(_has_foreign_frame(link) for link, _ in links)
    parts: list[str] = []
    for link, word in reversed(links):
        if isinstance(link, StepFailed) and link.traceback and link.__cause__ is None:
            parts += [link.traceback.rstrip("\n") + "\n", CAUSED]
        summary = traceback.TracebackException(type(link), link, link.__traceback__)
        if not is_ours:
            _trim(summary, link)
        parts += [*summary.format(chain=False), word]
    return "".join(parts)


class TrimmedTracebacks(logging.Formatter):
    """A formatter of log records that trims their tracebacks. Other formatters of the same record still print the whole
    traceback."""

    def format(self, record: logging.LogRecord) -> str:
        cached, record.exc_text = record.exc_text, None
        try:
            return super().format(record)
        finally:
            record.exc_text = cached

    def formatException(self, ei: Any) -> str:  # the name is logging's
        return traceback_text(ei[1]).rstrip("\n") if ei[1] is not None else super().formatException(ei)


def _links(error: BaseException) -> Iterator[tuple[BaseException, str]]:
    """Yield an error and the chain of its causes and contexts, each with the text that follows it in a traceback."""
    link: BaseException | None = error
    word, ids = "", set[int]()
    while link is not None and id(link) not in ids:
        ids.add(id(link))
        yield link, word
        if link.__cause__ is not None:
            link, word = link.__cause__, CAUSED
        else:
            link, word = (None if link.__suppress_context__ else link.__context__), DURING


def _members(error: BaseException) -> tuple[BaseException, ...]:
    return error.exceptions if isinstance(error, BaseExceptionGroup) else ()


def _has_foreign_frame(error: BaseException) -> bool:
    return any(_visible(error.__traceback__)) or any(_has_foreign_frame(member) for member in _members(error))


def _trim(summary: traceback.TracebackException, error: BaseException) -> None:
    """Remove our frames from a traceback, and from those of the members of a group and of their causes."""
    if error.__traceback__ is not None:
        frames = zip(summary.stack, _visible(error.__traceback__), strict=False)
        summary.stack = traceback.StackSummary.from_list([frame for frame, stays in frames if stays])
    for inner, member in zip(summary.exceptions or (), _members(error), strict=False):
        for chained, link in zip(_summaries(inner), _links(member), strict=False):
            _trim(chained, link[0])


def _summaries(summary: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    """Yield a traceback and those of its causes, in the order of `_links`."""
    link: traceback.TracebackException | None = summary
    while link is not None:
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _visible(frames: TracebackType | None) -> list[bool]:
    """Return for each frame whether it is shown. A caller of Python is hidden if Penstock called it."""
    visible: list[bool] = []
    is_called_by_us = True
    while frames is not None:
        package = str(frames.tb_frame.f_globals.get("__name__")).partition(".")[0]
        if package in OUR_PACKAGES:
            is_called_by_us = True
        elif package not in CALLERS:
            is_called_by_us = False
        visible.append(not is_called_by_us)
        frames = frames.tb_next
    return visible
