"""Workflows: graphs of tasks, written in Python or in YAML. See docs/workflows.md.

from penstock import workflow
from penstock import each, failed, on_exit
"""

from __future__ import annotations

from penstock.language.workflows.context_tasks import ContextTask
from penstock.language.workflows.fan_out import each
from penstock.language.workflows.model import Workflow
from penstock.language.workflows.serialization import from_body, from_yaml, to_yaml
from penstock.language.workflows.shared_context import Context
from penstock.language.workflows.task_builders import fail, inquiry, noop, on_exit, task, wait_for_event
from penstock.language.workflows.task_handle import all_of, any_of, failed, none_of, skipped, success
from penstock.language.workflows.value_reference import (
    context,
    error,
    event,
    expr,
    index,
    item,
    parameters,
    result,
    system,
    variables,
)
from penstock.language.workflows.workflow_decorator import workflow

__all__ = [
    "Context",
    "ContextTask",
    "Workflow",
    "all_of",
    "any_of",
    "context",
    "each",
    "error",
    "event",
    "expr",
    "fail",
    "failed",
    "from_body",
    "from_yaml",
    "index",
    "inquiry",
    "item",
    "none_of",
    "noop",
    "on_exit",
    "parameters",
    "result",
    "skipped",
    "success",
    "system",
    "task",
    "to_yaml",
    "variables",
    "wait_for_event",
    "workflow",
]
