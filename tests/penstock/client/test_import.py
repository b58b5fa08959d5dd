"""Importing the client costs little: a web server does it in every process, a script before it says how it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    *(
        "aio_pika",
        "alembic",
        "asyncpg",
        "cryptography",
        "fastapi",
        "httpx",
        "jinja2",
        "prometheus_client",
    ),
    *("pydantic", "pydantic_settings", "rich", "sqlalchemy", "structlog", "tenacity", "typer", "yaml"),
)
MOST = 200
"""Modules, Python's own among them: about 100 are needed, 795 were once loaded."""


@pytest.mark.parametrize("name", ["Client", "ActionRef", "PenstockError"])
def test_nothing_heavy_is_loaded_before_it_is_used(name: str) -> None:
    script = f"import sys\nfrom penstock import {name}\nprint(*sorted(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = ran.stdout.split()
    assert not {module.partition(".")[0] for module in loaded} & set(HEAVY)
    assert len(loaded) < MOST
