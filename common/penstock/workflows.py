"""What a workflow is written with: `from penstock.workflows import each, failed, on_exit`. See docs/workflows.md."""

from __future__ import annotations

from penstock.language.workflows import *  # noqa: F403
from penstock.language.workflows import __all__ as __all__
