"""The installation of this process: the one that the settings name, or else the embedded one of this folder."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from pydantic import SecretStr

from penstock.errors import ConfigurationError
from penstock.extras import require
from penstock.service.environment import load
from penstock.settings import Settings

HOME = Path(".penstock")
"""The folder of the embedded database."""


async def find_installation(settings: Settings | None = None) -> Settings:
    """Return the settings, by default those of the environment. If they name no database, use the embedded one of this
    folder.

    The embedded database runs as long as a process uses it. Raises ConfigurationError if there is none.
    """
    settings = settings or load()
    if settings.database_url is not None:
        return settings
    home = Path(os.environ.get("PENSTOCK_HOME", HOME))
    if not home.exists():
        raise ConfigurationError(
            "no database is named, and this folder has no embedded database",
            hint="First run `penstock dev` in this folder, or set PENSTOCK_DATABASE_URL.",
        )
    require("embedded")
    # imported here only: most processes name an external server and never need it
    from penstock.service import embedded

    server = await asyncio.to_thread(embedded.start, home.resolve())
    return settings.model_copy(update={"database_url": SecretStr(server.dsn)})


def can_be_asked() -> bool:
    """Return whether an installation can be queried without starting a server."""
    if load().database_url is not None:
        return True
    home = Path(os.environ.get("PENSTOCK_HOME", HOME))
    if not home.exists():
        return False
    require("embedded")
    from penstock.service import embedded

    return embedded.runs(home.resolve())
