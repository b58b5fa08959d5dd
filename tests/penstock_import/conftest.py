"""Tests that run Celery's own code beside what the importer makes of it."""

from __future__ import annotations

from collections.abc import Iterator

import celery.app.builtins  # noqa: F401  registers what each application has
import pytest
from celery import _state


@pytest.fixture(autouse=True)
def shared_tasks_apart() -> Iterator[None]:
    """Forget the shared tasks of a test. Celery would make each of them anew for every later application of the process."""
    before = set(_state._on_app_finalizers)
    yield
    _state._on_app_finalizers.clear()
    _state._on_app_finalizers.update(before)
