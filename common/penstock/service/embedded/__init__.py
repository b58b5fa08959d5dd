"""The PostgreSQL server that Penstock starts by itself, for laptops and small installations.

`start(folder)` returns a `Server` with a `dsn`. The server runs while any process uses it. The server ends when the
last user has released it or has died, even by kill -9. The data stays in the folder.
"""

from __future__ import annotations

from penstock.service.embedded.server import Server, runs, start, stop

__all__ = ["Server", "runs", "start", "stop"]
