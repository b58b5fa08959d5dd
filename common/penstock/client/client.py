"""The client: publish events, start executions, wait for results, read what happened.

async with Client.connect() as client:
    id = await client.start("shop.charge", {"order": 7}, key="order-7")
    result = await client.result(id)
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import UUID

from penstock.client.argument_ranges import check_limit
from penstock.client.checked_arguments import checks_arguments, timeout_seconds
from penstock.client.start_and_wait import Startable, StartAndWatch, named_start
from penstock.client.usable import check_usable
from penstock.errors import InvalidInput
from penstock.language.terms.action_ref import STARTER, ActionRef, Starter, open_starter
from penstock.language.terms.event_sources import check_source
from penstock.language.terms.ids import new_id
from penstock.run.cut_texts import cut_end

if TYPE_CHECKING:
    from penstock.client.breakers import Breakers
    from penstock.client.bulk import BulkOutcome
    from penstock.client.holds import Holds
    from penstock.client.limits import Limits
    from penstock.client.rule_replays import ReplayPage
    from penstock.client.rules import Rules
    from penstock.client.saved_views import Views
    from penstock.client.schedules import Schedules
    from penstock.client.workers import Workers
    from penstock.language.terms.budgets import Amount
    from penstock.language.terms.routing import RoutingRule
    from penstock.language.workflows.model import Workflow
    from penstock.messaging.outbox import Publisher
    from penstock.operate.activity import ActivityWatch
    from penstock.operate.overview import Overview
    from penstock.operate.routes import RouteUse
    from penstock.operate.why import Why
    from penstock.run.sent_signal import SentSignal
    from penstock.settings import Settings
    from penstock.store.events.enforcement_list import ListedEnforcement
    from penstock.store.executions.execution_list import ExecutionFilter, ListedExecution
    from penstock.store.executions.executions import Execution, Move
    from penstock.store.executions.inquiries import Inquiry
    from penstock.store.executions.past_attempts import PastAttempt
    from penstock.store.executions.recoveries import Recovery
    from penstock.store.session.database import Database, Session, Transaction

# Importing the client costs little. A method's imports happen at its first call, and the common imports at `connect`.
# A web server imports the client in every process, and so does a script that only prints its usage.


@checks_arguments
class Client(StartAndWatch):
    """A client of one installation. It is safe to share between tasks; create one for each process."""

    def __init__(self, settings: Settings, database: Database, publisher: Publisher) -> None:
        from penstock.client.publishing import Publishing
        from penstock.client.submits import Submits
        from penstock.store.executions.result_watch import ResultWatch

        self.settings = settings
        self.database = database
        self.session: Session = database.session()
        self.publisher = publisher
        self._submits = Submits(self.session, database, publisher)
        self.publishing = Publishing(self.session, publisher)
        self._watch = ResultWatch(database)
        self.outer: Starter | None = None
        self.closed = False
        self._process = os.getpid()

    @classmethod
    @asynccontextmanager
    async def connect(cls, settings: Settings | None = None) -> AsyncIterator[Client]:
        """Connect a client to the installation that the settings name. By default they are those of the environment,
        or of the embedded installation of this folder. Raises ConnectionFailed when PostgreSQL or the broker does not
        answer."""
        if isinstance(settings, str):
            raise InvalidInput(
                "a client is connected with settings, and not with an address",
                hint="Set PENSTOCK_DATABASE_URL and call `Client.connect()`, or give `Settings(database_url=...)`.",
            )
        from penstock import tracing
        from penstock.client.installation import find_installation
        from penstock.messaging.outbox import Publisher
        from penstock.messaging.transports.choice import make_transport
        from penstock.store.session.database import Database

        settings = settings or await find_installation()
        tracing.set_up()  # so that the program's own traces are propagated
        database = Database(settings, role="client")
        transport = make_transport(database, role="client")
        publisher = Publisher(transport, database)
        client = cls(settings, database, publisher)
        try:
            await transport.open()
            client.outer = open_starter()
            STARTER.set(client)
            yield client
        finally:
            client.closed = True
            STARTER.set(open_starter())
            await client.close()
            await publisher.close()
            await transport.close()
            await database.close()
            await tracing.flush()

    def _check_usable(self) -> None:
        check_usable(self._process, closed=self.closed)

    @cached_property
    def schedules(self) -> Schedules:
        """Return the operations on schedules."""
        from penstock.client.schedules import Schedules

        return Schedules(self.session, self.publisher)

    @cached_property
    def limits(self) -> Limits:
        """Return the operations on limits."""
        from penstock.client.limits import Limits

        return Limits(self.session, self.publisher)

    @cached_property
    def holds(self) -> Holds:
        """Return the operations on holds."""
        from penstock.client.holds import Holds

        return Holds(self.session)

    @cached_property
    def views(self) -> Views:
        """Return the operations on saved views."""
        from penstock.client.saved_views import Views

        return Views(self.session)

    @cached_property
    def breakers(self) -> Breakers:
        """Return the operations on breakers."""
        from penstock.client.breakers import Breakers

        return Breakers(self.session)

    @cached_property
    def rules(self) -> Rules:
        """Return the operations on rules."""
        from penstock.client.rules import Rules

        return Rules(self.session)

    @cached_property
    def workers(self) -> Workers:
        """Return the operations on workers."""
        from penstock.client.workers import Workers

        return Workers(self.session)

    @cached_property
    def _activity(self) -> ActivityWatch:
        from penstock.operate.activity import ActivityWatch

        return ActivityWatch()

    async def close(self) -> None:
        """End the waits for results, with an error for their callers. The creator of the connections closes those."""
        await self._watch.close()
        await self._submits.close()

    async def start(
        self,
        ref: Startable,
        params: Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
        tenant: str = "public",
        priority: int = 0,
        delay: float | timedelta | str | None = None,
        at: datetime | None = None,
        expires_at: datetime | None = None,
        options: Mapping[str, Any] | None = None,
        by: str | None = None,
        secrets: Mapping[str, str] | None = None,
        budget: Mapping[str, Amount] | None = None,
        when_spent: str = "refuse",
        max_depth: int | None = None,
        max_descendants: int | None = None,
        labels: Mapping[str, str] | None = None,
        debounce: float | timedelta | str | None = None,
        debounce_key: str | None = None,
        at_most: float | timedelta | str | None = None,
        keep: str = "last",
        connection: Any = None,
    ) -> UUID:
        """Start an action or workflow. `ref` is its ref, the object, or a call with parameters
        (`charge.call(order=7)`). Return the id of its execution once it is durably stored.

        `key`: a second start with the same key returns the same execution (Conflict if the parameters differ). `delay`
        (seconds) or `at` delays the start. An execution that has not started by `expires_at` ends as timeout. `by` is
        the starter, stored as the origin. `budget` is an amount for each unit, which all of its tree shares.
        `when_spent` is the reaction to a spent budget: `refuse` or `wait`. `max_depth` bounds the number of rules that
        follow from it in a row, and `max_descendants` the executions that they start. `secrets` maps parameters to the
        names of the stored secrets that they get. Lists find it by its `labels`, such as {"customer": "acme"}, which
        its tasks also have.

        `debounce` (seconds, or a text such as "5s") collects the starts of a burst in one execution. All of them get
        its id. Each start delays it by that time, to at most `at_most` after the first start. Starts with the same
        `debounce_key`, action and tenant form one burst. `keep` tells which start gives the parameters: the `last`, or
        the `first`.

        `connection` is an open asyncpg transaction of yours in which to submit; a relay publishes the execution after
        your commit.

        Raises NotFound if the action is unknown or retired. Raises InvalidInput if the parameters do not fit its schema, or
        an option is not valid. Raises Conflict if the key or the burst belongs to a different start.
        """
        from penstock.client.starts import Request

        ref, params = named_start(ref, params)
        request = Request(
            ref, key, tenant, priority, delay, at, expires_at, options, by, secrets, budget, when_spent,
            max_depth, max_descendants, labels, debounce, debounce_key, at_most, keep,
        )  # fmt: skip
        return await self._submits.start(request, params, connection)

    async def start_many(
        self,
        ref: str | ActionRef[..., Any] | Workflow,
        params: Sequence[Mapping[str, Any]],
        *,
        tenant: str = "public",
        priority: int = 0,
        labels: Mapping[str, str] | None = None,
    ) -> list[UUID]:
        """Start one execution for each of `params`, all in one transaction. Each has the `labels`. Raises the errors of
        `start`, and then starts none."""
        from penstock.client.starts import Request

        name, _ = named_start(ref)
        request = Request(name, tenant=tenant, priority=priority, labels=labels)
        return await self._submits.start_many(request, params)

    # -- events --------------------------------------------------------------------------------------------------

    async def publish(
        self,
        trigger: str,
        payload: Any = None,
        *,
        key: str | None = None,
        tenant: str = "public",
        source: str = "client",
        max_depth: int | None = None,
        max_descendants: int | None = None,
    ) -> UUID:
        """Publish an event, and return its id once it is durably stored. A second publish with the same `key` and
        `source` returns the same event. `max_depth` bounds the number of rules that follow from it in a row, and
        `max_descendants` the executions that they start.

        Raises NotFound for an unknown trigger. Raises InvalidInput for a payload that its schema refuses, or a
        reserved source. Raises Conflict if the payload of the key differs.
        """
        source = check_source(source)
        return await self.publishing.publish(
            trigger,
            payload,
            key=key,
            tenant=tenant,
            source=source,
            max_depth=max_depth,
            max_descendants=max_descendants,
        )

    # -- results -------------------------------------------------------------------------------------------------

    async def result(self, id: UUID, *, timeout: float | timedelta | str | None = None) -> Any:
        """Wait for an execution to end, at most `timeout` (60, "5m"), and return its result. Raises ExecutionFailed
        with its error if it did not complete, and TimeoutError if it has not ended after `timeout`. Raises NotFound if
        no execution has this id."""
        return await self._watch.result(id, timeout=timeout_seconds(timeout))

    async def get(self, id: UUID) -> Execution:
        """Return the current state of an execution. Raises NotFound if no execution has this id."""
        from penstock.store.executions import executions

        return await executions.get(self.session, id)

    async def history(self, id: UUID) -> list[Move]:
        """Return every status of an execution, oldest first. Raises NotFound if no execution has this id."""
        from penstock.store.executions import executions

        return await executions.history(self.session, await self.get(id))

    async def attempts(self, id: UUID) -> list[PastAttempt]:
        """Return every attempt of an execution, oldest first, with its times, its worker and its outcome. Raises
        NotFound if no execution has this id."""
        from penstock.store.executions import past_attempts

        return await past_attempts.attempts(self.session, await self.get(id))

    async def why(self, id: UUID, task: str | None = None) -> Why:
        """Explain what an execution waits for, or how it ended. `task` selects a task of a workflow, begun or not.
        Raises NotFound if no execution has this id, or the workflow has no such task."""
        from penstock.operate.why import why

        return await why(self.session, id, self.settings, task)

    async def cancel(self, *ids: UUID, reason: str = "asked by a client") -> int:
        """Ask for executions to end, and return the number of those asked. Ended ones are left unchanged.

        A second cancel also cancels the `on_exit` of a workflow. It ends a durable function during its clean-up, together with
        children that clean up.
        """
        from penstock.messaging import broadcast
        from penstock.store.executions import executions
        from penstock.store.session.committed_once import committed_once

        tx, count = await committed_once(
            self.session, lambda tx: executions.cancel(tx, ids, reason, by_hand=True)
        )
        self.publisher.publish(tx.staged)
        await broadcast.cancel_requested(self.publisher.transport, tx.canceling)
        return count

    async def set_priority(self, id: UUID, priority: int) -> int:
        """Set the priority of an execution and of its tasks that have not ended. Waiting executions move to their new
        places at once, and retries keep the priority. Return the number of executions that had another priority.

        Raises NotFound if no execution has this id, Conflict if the execution has ended, and InvalidInput for a
        priority out of range.
        """
        from penstock.client.priorities import change

        tx, count = await change(self.session, id, priority)
        self.publisher.publish(tx.staged)
        return count

    async def reschedule(
        self,
        id: UUID,
        *,
        at: datetime | None = None,
        delay: float | timedelta | str | None = None,
        by: str,
        reason: str | None = None,
    ) -> datetime:
        """Start an execution, or its next attempt, at another instant: `at`, or after `delay` (seconds). Return the
        instant. The execution must not have begun: it is delayed, or waits for a retry, a limit or a worker. Without
        `at` and `delay` it starts as soon as possible. The change is stored with `by` and `reason`.

        Raises NotFound if no execution has this id. Raises InvalidInput if `at` and `delay` are both given, or one of
        them is out of range. Raises Conflict if it has begun or ended, is held, or would expire before.
        """
        from penstock.client.reschedules import reschedule

        tx, instant = await reschedule(self.session, id, at, delay, by, reason)
        self.publisher.publish(tx.staged)
        return instant

    async def raise_budget(self, id: UUID, unit: str, amount: Amount) -> None:
        """Raise a budget of a tree (an execution and all that it starts) to `amount`. Waiting executions start until the
        raised budget is used up. Raises NotFound if the tree has no budget of the unit, and Conflict for an amount below the
        present one. Raises InvalidInput for one that is not above 0 and at most 10^15."""
        from penstock.client.budgets import raise_budget
        from penstock.store.session.database import retried

        tx = await retried(lambda: raise_budget(self.session, id, unit, amount), deadline=30)
        self.publisher.publish(tx.staged)

    async def complete(self, id: UUID, *, result: Any = None, error: str | None = None, by: str) -> None:
        """End the wait of an execution for an outside system (`later`) by hand, with a result, or with the error of its
        attempt. The retry policy decides about another attempt. Raises Conflict if the execution does not wait for
        this, and InvalidInput for an outcome that cannot be stored."""
        from penstock.operate import outside
        from penstock.store.session.committed_once import committed_once

        outcome = outside.Report.by_hand(result, error)
        tx, _ = await committed_once(self.session, lambda tx: outside.complete(tx, id, outcome, by))
        self.publish_staged(tx)

    async def command(
        self,
        id: UUID,
        kind: str,
        *,
        task: str | None = None,
        value: Any = None,
        by: str,
        reason: str | None = None,
        ahead: bool = False,
    ) -> str | None:
        """Send a running workflow the command `pause`, `resume`, `skip` (a task) or `set_result` (of a task). A
        durable function takes `skip` or `set_result` for a step. `ahead`: it may not have asked for the step yet.

        The command is stored with `by` and `reason`, and carried out as soon as no other step of the workflow runs.
        Return a notice for people if tasks before the named task have not ended, else None. Raises Conflict if the
        execution does not run or the task has ended. Raises NotFound for an unknown execution or task, and for a step
        that the function has not asked for, unless `ahead` is set.
        """
        from penstock.client import commands
        from penstock.messaging import broadcast
        from penstock.store.session.committed_once import committed_once

        tx, notice = await committed_once(
            self.session,
            lambda tx: commands.command(
                tx, id, kind, task=task, value=value, by=by, reason=reason, ahead=ahead
            ),
        )
        self.publisher.publish(tx.staged)
        await broadcast.cancel_requested(self.publisher.transport, tx.canceling)
        return notice

    async def replay_rule(
        self,
        ref: str,
        *,
        since: datetime,
        until: datetime | None = None,
        tenant: str | None = None,
        dry_run: bool = False,
        cursor: UUID | None = None,
        limit: int = 200,
    ) -> ReplayPage:
        """Replay stored events through a rule, and return the outcome for each. `since` and `until` bound the instants at which
        they were stored. An event for which the rule has started an execution starts none. With `dry_run` nothing is started, and
        the outcomes have the masked parameters.

        One call replays at most `limit` events (up to 500) in one transaction. Call it again with `cursor`, the `next`
        of the page, until that is None. Raises NotFound if the rule does not exist, and Conflict if it is disabled.
        Raises InvalidInput for a rule with a window or a debounce time.
        """
        from penstock.client.rule_replays import Replay, replay

        tenants = None if tenant is None else (tenant,)
        tx, page = await replay(
            self.session, Replay(ref, since, until, tenants, dry_run=dry_run, cursor=cursor, limit=limit)
        )
        self.publisher.publish(tx.staged)
        return page

    async def signal(
        self,
        id: UUID | None = None,
        name: str | None = None,
        value: Any = None,
        *,
        key: str | None = None,
        tenant: str | None = None,
    ) -> SentSignal:
        """Send a durable function a signal. There `ctx.signal(name)` returns its value. The answer has the id of the
        function's execution, and says whether the function waits for this signal now.

        The receiver is named by its id, or by the idempotency key and the tenant (default: public) of its start:
        `signal(key="order-7", name="paid", value=12)`.

        Raises NotFound if no execution of the tenant has the key. Raises Conflict if the execution has ended, or is not a
        durable function. Raises DefinitionError if the name is not valid. Raises InvalidInput if the value is not JSON, if
        the id is not a UUID, or without exactly one of id and key."""
        from penstock.client import durable_commands
        from penstock.store.session.committed_once import committed_once

        tx, sent = await committed_once(
            self.session, lambda tx: durable_commands.signal(tx, id, key, tenant, name, value)
        )
        self.publisher.publish(tx.staged)
        return sent

    async def rerun(
        self,
        id: UUID,
        *,
        from_failed: bool = False,
        from_task: str | None = None,
        params: Mapping[str, Any] | None = None,
        unset: Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        by: str,
        reason: str | None = None,
    ) -> UUID:
        """Run an ended execution again, with the same version and parameters. Return the id of the new execution. `params`
        replace parameters of the same names, and those in `unset` are left out. A name with dots is a path into a
        parameter: `customer.name`.

        The labels of searchable parameters follow the parameters of the new run. A label of the old start or rule with
        such a name is not carried over. The other labels stay, and `labels` are added to them or replace them.

        For a workflow, `from_failed` keeps the tasks that succeeded, and `from_task` keeps those that do not come after
        that task. The re-run is stored with `by` and `reason`. Raises NotFound if no execution has this id, or the
        workflow has no such task. Raises InvalidInput if the options contradict each other or do not fit the execution.
        Raises Conflict if the execution has not ended, or if a task that would be kept has read a changed parameter.
        """
        from penstock.client import commands
        from penstock.store.executions import executions
        from penstock.store.session.committed_once import committed_once

        async def write(tx: Transaction) -> UUID:
            new = new_id()
            old = await executions.get(tx, id)
            await commands.rerun(
                tx,
                new,
                old,
                from_failed=from_failed,
                from_task=from_task,
                by=by,
                reason=reason,
                changed=params,
                unset=unset,
                labels=labels,
            )
            return new

        tx, new = await committed_once(self.session, write)
        self.publisher.publish(tx.staged)
        return new

    async def answer(self, id: UUID, response: Any, *, by: str, asked: datetime | None = None) -> None:
        """Answer the inquiry of an execution. The answer becomes its result, or the execution continues with it.

        `asked` is the `created_at` of the inquiry, for an execution that may ask several. Raises NotFound if the
        execution has asked nothing, InvalidInput if the response does not fit its schema, and NotAllowed if `by` is not
        the assignee. Raises Conflict if the inquiry was answered before, or another one is open by now.
        """
        from penstock.client import inquiries

        self.publisher.publish(await inquiries.answer(self.session, id, response, by, asked))

    async def cancel_chosen(self, filters: ExecutionFilter, *, reason: str, dry_run: bool = False) -> int:
        """Ask the executions that match the filter to end. Return the number asked, or with `dry_run` the number that
        would be."""
        from penstock.client import executions

        return await executions.cancel(self, filters, reason=reason, dry_run=dry_run)

    async def rerun_chosen(
        self,
        filters: ExecutionFilter,
        *,
        by: str,
        reason: str | None,
        from_failed: bool = False,
        dry_run: bool = False,
    ) -> list[BulkOutcome]:
        """Run the ended executions that match the filter again, and return an outcome for each. An execution that was re-run
        before is left out."""
        from penstock.client import executions

        outcomes = executions.rerun(
            self, filters, by=by, reason=reason, from_failed=from_failed, dry_run=dry_run
        )
        return [outcome async for outcome in outcomes]

    # -- lists ---------------------------------------------------------------------------------------------------

    async def executions(
        self, filters: ExecutionFilter, *, before: UUID | None = None, limit: int = 50
    ) -> list[ListedExecution]:
        """Return the executions that match the filter, newest first. `before` is the id at the end of the previous
        page. Raises InvalidInput if `limit` is out of range."""
        from penstock.operate import titles

        check_limit(limit)
        return await titles.listed(self.session, filters, cursor=before, limit=limit)

    async def inquiries(
        self,
        *,
        answered: bool = False,
        assignee: str | None = None,
        execution: UUID | None = None,
        limit: int = 100,
    ) -> list[Inquiry]:
        """Return at most `limit` open inquiries, newest first, and with `answered` also the ended ones. With `execution`, only
        the inquiry of this execution."""
        from penstock.client import inquiries

        check_limit(limit)
        return await inquiries.listed(
            self.session, answered=answered, assignee=assignee, execution=execution, limit=limit
        )

    async def enforcements(
        self,
        *,
        rule: str | None = None,
        event: UUID | None = None,
        status: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> tuple[list[ListedEnforcement], str | None]:
        """Return the enforcements of the newest events, and the `cursor` of the next page, or None after the last page.
        Raises InvalidInput for an unknown status."""
        from penstock.operate.enforcements import listed
        from penstock.store.events.enforcement_list import EnforcementFilter

        check_limit(limit)
        filters = EnforcementFilter(rule=rule, event=event, status=status)
        return await listed(self.session, filters, cursor=cursor, limit=limit)

    async def recoveries(
        self,
        *,
        since: datetime | None = None,
        kind: str | None = None,
        worker: str | None = None,
        limit: int = 50,
    ) -> list[Recovery]:
        """Return what was lost with a worker or a message and recovered, newest first, by default of one day. `kind` is
        `attempt` or `fire`. Raises InvalidInput for another `kind`, or if `limit` is out of range."""
        from penstock.store.executions import recoveries

        check_limit(limit)
        if kind not in (None, "attempt", "fire"):
            raise InvalidInput(
                f"{cut_end(kind, 60)!r} is not a kind of loss", hint="Pass kind='attempt' or kind='fire'."
            )
        return await recoveries.newest(self.session, since, kind=kind, worker=worker, limit=limit)

    async def definitions(self, kinds: Sequence[str], ref: str | None = None) -> list[dict[str, Any]]:
        """Return the current definitions of these kinds, such as `action` and `workflow`, by kind and ref; or only those
        with this ref. Secrets are masked."""
        from penstock.operate import definitions

        return await definitions.listed(self.session, kinds, None if ref is None else [ref])

    async def described(self, id: UUID) -> dict[str, Any]:
        """Return the full description of an execution, with its attempts, and with the tree of its tasks if it is a
        workflow. Raises NotFound if no execution has this id."""
        from penstock.operate.executions import described_execution

        return await described_execution(self.session, id)

    async def event(self, id: UUID) -> dict[str, Any]:
        """Return an event, with the outcome of each rule of its trigger as `rules`. Raises NotFound if no event has
        this id."""
        from penstock.operate import event_rules

        return await event_rules.described_with_rules(self.session, id)

    async def drawing(self, id: UUID, notation: str) -> str:
        """Return the drawing of a workflow's tasks with their statuses. `notation` is `mermaid` or `dot` (Graphviz).
        Raises NotFound if no execution has this id. Raises InvalidInput for another notation, or if the execution is
        not a run of a workflow."""
        from penstock.operate.executions import drawing

        return await drawing(self.session, id, notation)

    async def routes(self) -> list[RouteUse]:
        """Return every route that a definition names or a live worker serves."""
        from penstock.operate import routes

        return await routes.table(self.session, self.settings)

    async def routing_rules(self) -> list[RoutingRule]:
        """Return the routing rules, in the order in which they are tried."""
        from penstock.operate import routes

        return await routes.rules(self.session)

    async def overview(self) -> Overview:
        """Return the state of the installation: the last minute, the waiting work, the workers, the latest failures."""
        from contextlib import nullcontext

        from penstock.operate.overview import newest_failures, summed_up

        activity = await self._activity.look(lambda: nullcontext(self.session), self.settings.stale_threshold)
        failures = await newest_failures(self.session)
        return summed_up(activity, failures, self.settings.stale_threshold)

    def publish_staged(self, tx: Transaction) -> None:
        """Publish the messages that a committed transaction on this client's session staged."""
        self.publisher.publish(tx.staged)

    async def flush(self) -> None:
        """Wait until all submitted messages are published."""
        await self.publisher.flush()
