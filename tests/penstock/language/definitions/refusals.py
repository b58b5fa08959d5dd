"""Declarations that are refused: at the line of the declaration, with a hint."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import DefinitionError


def refused(declare: Callable[[], object], message: str, hint: str = "") -> None:
    """`declare` raises DefinitionError, which names a line of the file in which `declare` is written."""
    file = Path(inspect.getsourcefile(declare) or "?").name
    with pytest.raises(DefinitionError, match=re.escape(message)) as raised:
        declare()
    assert hint in str(raised.value.hint)
    assert re.search(rf"{re.escape(file)}:\d+: ", str(raised.value))
