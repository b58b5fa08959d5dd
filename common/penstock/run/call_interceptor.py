"""The interceptor of calls of actions and workflows. While a workflow function is read, such a call adds a task and
runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

CallInterceptor = Callable[[Any, tuple[Any, ...], Mapping[str, Any]], Any]
"""A function that takes the called object and its arguments, and returns a stand-in for the result."""

CALL_INTERCEPTOR: ContextVar[CallInterceptor | None] = ContextVar("penstock.call_interceptor", default=None)
