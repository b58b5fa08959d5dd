"""The pages that people look at: one file a page, all of them in `ROUTERS`.

A page takes what it shows from the functions that the API's routes call, and is guarded as they are. What its buttons do is a
request to the API itself, by the module `static/actions.js`; only what touches many at once is a form of its own. Pages run
nothing that is not here, and ask nobody else."""

from __future__ import annotations

from fastapi import APIRouter

from penstock_api.pages import (
    dead_letters,
    definitions,
    events,
    execution,
    executions,
    inquiries,
    limits,
    overview,
    provider_sign_in,
    rules,
    schedules,
    sign_in,
    static_files,
    workers,
)

ROUTERS: tuple[APIRouter, ...] = (
    overview.router,
    executions.router,
    execution.router,
    definitions.router,
    events.router,
    rules.router,
    schedules.router,
    limits.router,
    inquiries.router,
    dead_letters.router,
    workers.router,
    static_files.router,
    sign_in.router,
    provider_sign_in.router,
)
