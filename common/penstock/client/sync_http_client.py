"""The client over HTTP for code that does not await.

with SyncHttpClient("https://penstock.example.org", token="pst_...") as client:
    print(client.run("shop.charge", {"order": 7, "amount": 25}))
"""

from __future__ import annotations

import httpx

from penstock.client.blocking import BlockingClient, LoopThread, Part, waiting
from penstock.client.http_client import HttpClient
from penstock.client.http_subjects import (
    HttpBreakers,
    HttpHolds,
    HttpLimits,
    HttpRules,
    HttpSchedules,
    HttpViews,
    HttpWorkers,
)
from penstock.client.start_and_wait import BlockingStartAndWait


class SyncHttpLimits(Part[HttpLimits]):
    """`HttpClient.limits` with methods that block."""

    all = waiting(HttpLimits.all)
    totals = waiting(HttpLimits.totals)
    set = waiting(HttpLimits.set)
    remove = waiting(HttpLimits.remove)


class SyncHttpBreakers(Part[HttpBreakers]):
    """`HttpClient.breakers` with methods that block."""

    all = waiting(HttpBreakers.all)
    open = waiting(HttpBreakers.open)
    close = waiting(HttpBreakers.close)


class SyncHttpHolds(Part[HttpHolds]):
    """`HttpClient.holds` with methods that block."""

    all = waiting(HttpHolds.all)
    hold = waiting(HttpHolds.hold)
    release = waiting(HttpHolds.release)


class SyncHttpRules(Part[HttpRules]):
    """`HttpClient.rules` with methods that block."""

    all = waiting(HttpRules.all)
    enable = waiting(HttpRules.enable)
    delete = waiting(HttpRules.delete)


class SyncHttpSchedules(Part[HttpSchedules]):
    """`HttpClient.schedules` with methods that block."""

    all = waiting(HttpSchedules.all)
    enable = waiting(HttpSchedules.enable)
    disable = waiting(HttpSchedules.disable)
    pause = waiting(HttpSchedules.pause)


class SyncHttpViews(Part[HttpViews]):
    """`HttpClient.views` with methods that block."""

    all = waiting(HttpViews.all)
    get = waiting(HttpViews.get)
    create = waiting(HttpViews.create)
    update = waiting(HttpViews.update)
    delete = waiting(HttpViews.delete)


class SyncHttpWorkers(Part[HttpWorkers]):
    """`HttpClient.workers` with methods that block."""

    all = waiting(HttpWorkers.all)
    named = waiting(HttpWorkers.named)
    cordon = waiting(HttpWorkers.cordon)


class SyncHttpClient(BlockingStartAndWait, BlockingClient[HttpClient]):
    """The `HttpClient` with blocking methods. They have the same parameters, results and errors. A client is safe to
    share between threads. Create one for each process, after it has forked. Coroutines must use `HttpClient` instead."""

    def __init__(
        self, server: str, *, token: str | None = None, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        """Connect. Use `with`, or call `close` at the end."""
        self._client = HttpClient(server, token=token, transport=transport)
        self._thread = LoopThread()
        self.limits = SyncHttpLimits(self._client.limits, self._thread)
        self.breakers = SyncHttpBreakers(self._client.breakers, self._thread)
        self.holds = SyncHttpHolds(self._client.holds, self._thread)
        self.rules = SyncHttpRules(self._client.rules, self._thread)
        self.schedules = SyncHttpSchedules(self._client.schedules, self._thread)
        self.views = SyncHttpViews(self._client.views, self._thread)
        self.workers = SyncHttpWorkers(self._client.workers, self._thread)

    start = waiting(HttpClient.start)
    publish = waiting(HttpClient.publish)
    result = waiting(HttpClient.result)
    cancel = waiting(HttpClient.cancel)
    set_priority = waiting(HttpClient.set_priority)
    raise_budget = waiting(HttpClient.raise_budget)
    rerun = waiting(HttpClient.rerun)
    replay_rule = waiting(HttpClient.replay_rule)
    reschedule = waiting(HttpClient.reschedule)
    complete = waiting(HttpClient.complete)
    command = waiting(HttpClient.command)
    signal = waiting(HttpClient.signal)
    answer = waiting(HttpClient.answer)
    cancel_chosen = waiting(HttpClient.cancel_chosen)
    rerun_chosen = waiting(HttpClient.rerun_chosen)
    executions = waiting(HttpClient.executions)
    enforcements = waiting(HttpClient.enforcements)
    recoveries = waiting(HttpClient.recoveries)
    definitions = waiting(HttpClient.definitions)
    routes = waiting(HttpClient.routes)
    routing_rules = waiting(HttpClient.routing_rules)
    described = waiting(HttpClient.described)
    event = waiting(HttpClient.event)
    drawing = waiting(HttpClient.drawing)
    history = waiting(HttpClient.history)
    why = waiting(HttpClient.why)
    inquiries = waiting(HttpClient.inquiries)
    log_lines = waiting(HttpClient.log_lines)
    overview = waiting(HttpClient.overview)
    get_json = waiting(HttpClient.get_json)

    def close(self) -> None:
        """Close the connections. A second call does nothing, and neither does one in a process that was forked from the
        client's."""
        if self._thread.is_inherited or self._thread.closed:
            return
        try:
            self._thread.wait(self._client.__aexit__(None, None, None))
        finally:
            self._thread.close()
