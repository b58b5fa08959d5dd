"""The parts of the blocking client: its operations on limits, breakers, holds, rules, saved views, schedules
and workers."""

from __future__ import annotations

from penstock.client.blocking import Part, waiting
from penstock.client.breakers import Breakers
from penstock.client.holds import Holds
from penstock.client.limits import Limits
from penstock.client.rules import Rules
from penstock.client.saved_views import Views
from penstock.client.schedules import Schedules
from penstock.client.workers import Workers


class SyncBreakers(Part[Breakers]):
    """`Client.breakers` with methods that block."""

    all = waiting(Breakers.all)
    open = waiting(Breakers.open)
    close = waiting(Breakers.close)


class SyncHolds(Part[Holds]):
    """`Client.holds` with methods that block."""

    all = waiting(Holds.all)
    hold = waiting(Holds.hold)
    release = waiting(Holds.release)


class SyncViews(Part[Views]):
    """`Client.views` with methods that block."""

    all = waiting(Views.all)
    get = waiting(Views.get)
    create = waiting(Views.create)
    update = waiting(Views.update)
    delete = waiting(Views.delete)


class SyncLimits(Part[Limits]):
    """`Client.limits` with methods that block."""

    all = waiting(Limits.all)
    get = waiting(Limits.get)
    totals = waiting(Limits.totals)
    set = waiting(Limits.set)
    remove = waiting(Limits.remove)


class SyncRules(Part[Rules]):
    """`Client.rules` with methods that block."""

    all = waiting(Rules.all)
    enable = waiting(Rules.enable)
    delete = waiting(Rules.delete)


class SyncSchedules(Part[Schedules]):
    """`Client.schedules` with methods that block."""

    all = waiting(Schedules.all)
    get = waiting(Schedules.get)
    create = waiting(Schedules.create)
    put = waiting(Schedules.put)
    update = waiting(Schedules.update)
    delete = waiting(Schedules.delete)
    enable = waiting(Schedules.enable)
    disable = waiting(Schedules.disable)
    pause = waiting(Schedules.pause)
    run = waiting(Schedules.run)
    backfill = waiting(Schedules.backfill)
    preview = waiting(Schedules.preview)
    history = waiting(Schedules.history)
    health = waiting(Schedules.health)
    stats = waiting(Schedules.stats)


class SyncWorkers(Part[Workers]):
    """`Client.workers` with methods that block."""

    all = waiting(Workers.all)
    named = waiting(Workers.named)
    cordon = waiting(Workers.cordon)
