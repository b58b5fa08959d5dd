"""A real browser, for tests of pages."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, async_playwright

from tests.servers import apt
from tests.servers.errors import NoServer

NAMES = ("chromium", "chromium-browser", "google-chrome")


@asynccontextmanager
async def started() -> AsyncIterator[Browser]:
    """Skips the test where there is none and none can be installed."""
    program = await asyncio.to_thread(_program)
    if program is None:
        pytest.skip(
            "there is no Chromium here: install the package `chromium`, or set PENSTOCK_TEST_CHROMIUM"
        )
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        yield browser
        await browser.close()


def _program() -> str | None:
    """Return the program of this machine, installed first where that is possible."""
    given = os.environ.get("PENSTOCK_TEST_CHROMIUM")
    if given:
        return given
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None and apt.can_install():
        try:
            apt.install("chromium", there=lambda: shutil.which("chromium"))
        except NoServer:
            return None
        found = shutil.which("chromium")
    return found
