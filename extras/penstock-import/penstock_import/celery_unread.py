"""The tasks of files that Python cannot parse, by the lines of their text. Their calls in other files are named."""

from __future__ import annotations

import ast
import re
from pathlib import Path

_TASK = re.compile(
    r"^[ \t]*@[ \t]*(?:\w+\.)*(?:shared_|periodic_)?task\b(?:.*\n)+?[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)",
    re.M,
)


def stub_of_unread(file: Path) -> ast.Module | None:
    """Return a module with a function for each task in the text of a file; None for a text without a task."""
    try:
        text = file.read_text(errors="replace")
    except OSError:
        return None
    names = list(dict.fromkeys(_TASK.findall(text)))
    if not names:
        return None
    return ast.parse("".join(f"def {name}(*args, **kwargs): ...\n" for name in names if name.isidentifier()))
