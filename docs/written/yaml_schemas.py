"""The JSON Schemas of packs and workflows that are shipped in the package."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from penstock.language.packs.editor_schemas import SCHEMAS
from penstock.language.packs.shipped_schemas import KINDS, file_name


def _text(schema: Callable[[], dict[str, Any]]) -> str:
    return json.dumps(schema(), indent=1) + "\n"


FILES: Mapping[str, Callable[[], str]] = {file_name(kind): partial(_text, SCHEMAS[kind]) for kind in KINDS}
