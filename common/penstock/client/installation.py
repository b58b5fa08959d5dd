"""The installation of this process: the one that the settings name, else the embedded one of this folder."""

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
"""Where the embedded database lives."""


async def find_installation(settings: Settings | None = None) -> Settings:
    """The settings (by default: of the environment), with the embedded database of this folder where they name none. It
    runs for as long as a process, such as this one, uses it. Raises ConfigurationError where there is none."""
    settings = settings or load()
    if settings.database_url is not None:
        return settings
    home = Path(os.environ.get("PENSTOCK_HOME", HOME))
    if not home.exists():
        raise ConfigurationError(
            "no database is named, and there is no embedded one in this folder",
            hint="Run `penstock dev` here first, or set PENSTOCK_DATABASE_URL.",
        )
    require("embedded")
    from penstock.service import embedded  # most processes have a server of their own

    server = await asyncio.to_thread(embedded.start, home.resolve())
    return settings.model_copy(update={"database_url": SecretStr(server.dsn)})


def can_be_asked() -> bool:
    """Return true if an installation answers without the start of a server."""
    if load().database_url is not None:
        return True
    home = Path(os.environ.get("PENSTOCK_HOME", HOME))
    if not home.exists():
        return False
    require("embedded")
    from penstock.service import embedded

    return embedded.runs(home.resolve())
