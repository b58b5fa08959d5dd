"""The pages for people, a file for each, all of them in `ROUTERS`.

A page calls the same functions as the API's routes, and has the same guards. Its buttons send requests to the API
itself, by the module `static/actions.js`. Only bulk changes have their own forms. Pages load nothing from other
servers.
"""

from __future__ import annotations

from fastapi import APIRouter

from penstock_api.pages import (
    account,
    audit,
    dead_letters,
    definitions,
    events,
    execution,
    executions,
    holds,
    inquiries,
    limits,
    overview,
    provider_sign_in,
    rules,
    schedules,
    secrets,
    sign_in,
    static_files,
    subscriptions,
    tokens,
    users,
    webhooks,
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
    holds.router,
    inquiries.router,
    dead_letters.router,
    workers.router,
    users.router,
    tokens.router,
    secrets.router,
    webhooks.router,
    subscriptions.router,
    audit.router,
    account.router,
    static_files.router,
    sign_in.router,
    provider_sign_in.router,
)
