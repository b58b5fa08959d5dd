"""The routes of `/api/v1`, a file for each subject, all of them in `ROUTERS`."""

from __future__ import annotations

from fastapi import APIRouter

from penstock_api.routes import (
    account,
    audit,
    breakers,
    bulk,
    dead_letters,
    definitions,
    events,
    executions,
    holds,
    inquiries,
    limits,
    operations,
    saved_views,
    schedules,
    secrets,
    stream,
    subscriptions,
    tokens,
    users,
    webhooks,
    work,
    work_routes,
    workflow_runs,
    workflows,
)

ROUTERS: tuple[APIRouter, ...] = (
    events.router,
    executions.router,
    bulk.router,
    saved_views.router,
    workflow_runs.router,
    definitions.router,
    workflows.router,
    schedules.router,
    inquiries.router,
    limits.router,
    breakers.router,
    holds.router,
    work_routes.router,
    operations.router,
    dead_letters.router,
    stream.router,
    webhooks.router,
    subscriptions.router,
    secrets.router,
    tokens.router,
    users.router,
    account.router,
    audit.router,
    work.router,
)
