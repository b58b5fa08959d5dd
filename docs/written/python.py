"""docs/reference/python.md: every public name of `penstock`, with what its docstring says and an example that was run."""

from __future__ import annotations

import penstock
from docs.written.python_examples import BEFORE, EXAMPLES

HEAD = f"""# Python

This page is written by `docs/written`: every name that `penstock` exports, an example of it that a test runs, and what its code says.
The examples stand after this:

```python
{BEFORE}```
"""
MEMBERS = {"Client", "Context", "Definitions", "Limits", "Schedules"}
"""Classes whose methods users call."""


def page() -> str:
    return HEAD + "".join(map(_described, penstock.__all__))


def _described(name: str) -> str:
    home = f"penstock.{penstock._HOMES[name]}.{name}"
    example = EXAMPLES[name]
    members = "" if name in MEMBERS else "\n      members: false"
    return f"\n## `{name}`\n\n```python\n{example}\n```\n\n::: {home}\n    options:\n      show_root_heading: false{members}\n"
