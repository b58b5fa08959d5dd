"""While a workflow function is read, calling an action or a workflow does not run it: it becomes a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

CallInterceptor = Callable[[Any, tuple[Any, ...], Mapping[str, Any]], Any]
"""Takes what was called, and its arguments; gives a stand-in for the result."""

CALL_INTERCEPTOR: ContextVar[CallInterceptor | None] = ContextVar("penstock.call_interceptor", default=None)
