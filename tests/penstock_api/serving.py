"""An API on a socket, for what is sent over a wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI

from penstock.settings import Settings
from penstock_api.main import server_config


@asynccontextmanager
async def serving(app: FastAPI, settings: Settings | None = None, port: int = 0) -> AsyncIterator[str]:
    """Serve it as the service does, on this port or a free one of this machine; gives the address."""
    config = server_config(app, settings or Settings())
    config.port, config.timeout_graceful_shutdown = port, 1
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    await task
