"""The preparation of a start: a checked submission with its version, its parameters and its namespace."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, get_args
from uuid import UUID

import orjson

from penstock import tracing
from penstock.errors import InvalidInput, NotFound
from penstock.language.definitions.event_paths import at_most_a_day
from penstock.language.rules.secret_references import checked_parameters, referring
from penstock.language.schemas import Schema
from penstock.language.terms.budgets import WhenSpent, check_budget
from penstock.language.terms.column_ranges import HIGHEST_PRIORITY, INTEGER
from penstock.language.terms.durations import positive_seconds
from penstock.language.terms.durations import seconds as duration
from penstock.language.terms.ids import EXECUTION_CALLER, new_id
from penstock.language.terms.options import Wrong
from penstock.language.terms.outside_names import check_name, check_tenant
from penstock.language.terms.run_labels import check_labels
from penstock.run.stored_json import stored_form
from penstock.store.admission import namespaces
from penstock.store.definitions import catalog
from penstock.store.executions.executions import Submission
from penstock.store.session import clock
from penstock.store.session.database import Session, retried

FIRST_YEAR, LAST_YEAR = 1970, 9000
"""The years between which instants must lie. Later instants mark executions that are held until they are resumed."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request to start an execution, with the options of `Client.start` but without the parameters."""

    ref: str
    key: str | None = None
    tenant: str = "public"
    priority: int = 0
    delay: float | timedelta | str | None = None
    at: datetime | None = None
    expires_at: datetime | None = None
    options: Mapping[str, Any] | None = None
    by: str | None = None
    secrets: Mapping[str, str] | None = None
    budget: Mapping[str, float] | None = None
    when_spent: str = "refuse"
    max_depth: int | None = None
    max_descendants: int | None = None
    labels: Mapping[str, str] | None = None
    debounce: float | timedelta | str | None = None
    debounce_key: str | None = None
    at_most: float | timedelta | str | None = None
    keep: str = "last"
    started_by: UUID | None = None
    """The execution whose action starts this one, or None."""


@dataclass(frozen=True, slots=True)
class Target:
    """A version of an action or workflow, with the schema that checks the parameters of a start."""

    definition: int
    schema: Schema
    is_workflow: bool


class Starts:
    """The preparation of submissions, with a cache of looked-up versions."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._targets: dict[str, Target] = {}

    def forget(self) -> None:
        """Clear the cache, since one of its versions is no longer current."""
        self._targets.clear()

    async def prepare(
        self, request: Request, params: Sequence[Mapping[str, Any] | None], watcher: UUID | None = None
    ) -> list[Submission]:
        """Return a submission for each of `params`. Raises NotFound if the action is unknown or retired. Raises
        InvalidInput if the parameters do not fit its schema, or an option is not valid."""
        ref, session = request.ref, self._session
        check_tenant(request.tenant)
        if request.key is not None:
            check_name(request.key, "the key")
        check_start_options(request)
        target = self._targets.get(ref) or await self._look_up(ref)
        cap = session.settings.payload_cap
        try:
            bodies = [
                checked_parameters(target.schema, referring(values or {}, request.secrets), cap)
                for values in params
            ]
        except InvalidInput as error:
            error.hint = error.hint or target.schema.takes()
            raise
        where = namespaces.of(request.tenant, ref)
        namespace = namespaces.remembered(session, where)
        if namespace is None:
            namespace = (await retried(lambda: namespaces.places(session, [where]), deadline=30))[where]
        at, delay = request.at, request.delay
        if delay is not None:
            seconds = duration(delay)
            at = await retried(lambda: clock.in_seconds(session, seconds), deadline=30)
        keyed = request.key is not None
        options = _options(request)
        origin = _origin(request)
        return [
            Submission(
                id=new_id(),
                namespace=namespace,
                definition=target.definition,
                params=body.decode(),
                tenant=request.tenant,
                options=options,
                origin=origin,
                priority=request.priority,
                not_before=at,
                expires=request.expires_at,
                key=request.key,
                digest=_digest(ref, body) if keyed else None,
                watcher=watcher,
                debounces=request.debounce is not None,
                is_workflow=target.is_workflow,
            )
            for body in bodies
        ]

    async def _look_up(self, ref: str) -> Target:
        kinds = ("action", "workflow")
        rows = await retried(lambda: catalog.current(self._session, kinds, [ref]), deadline=30)
        if not rows:
            register = (
                "Register it with `penstock apply FILE`; `penstock actions` lists actions and workflows."
            )
            hint = await catalog.hint(self._session, kinds, ref, register)
            raise NotFound(f"no action or workflow {ref!r}", hint=hint)
        current = rows[0]
        if not current.enabled:
            raise NotFound(f"{ref} is retired", hint=f"Bring it back with `penstock retire --undo {ref}`.")
        parameters = orjson.loads(current.body).get("parameters")
        target = Target(current.definition_id, Schema(parameters), current.kind == "workflow")
        self._targets[ref] = target
        return target


def check_priority(priority: Any) -> None:
    """Raise InvalidInput for a priority that no column could hold."""
    if not isinstance(priority, int) or isinstance(priority, bool) or abs(priority) > HIGHEST_PRIORITY:
        raise InvalidInput(
            f"the priority is not a whole number from -{HIGHEST_PRIORITY} to {HIGHEST_PRIORITY}",
            hint="0 is the default, and a higher number starts first.",
        )


def check_start_options(request: Request) -> None:
    """Raise InvalidInput for options that no column could hold."""
    check_priority(request.priority)
    if request.delay is not None and request.at is not None:
        raise InvalidInput("`delay` and `at` are both given", hint="Give one of them.")
    check_instants(request.delay, at=request.at, expires_at=request.expires_at)
    if not isinstance(request.by, str | None):
        raise InvalidInput("`by` is not text", hint="Name the caller that starts it.")
    if request.labels:
        _labels(request.labels)
    if "debounce" in (request.options or {}):
        raise InvalidInput(
            "`options` has the key `debounce`", hint="Pass `debounce=` as an argument of its own."
        )


def check_instants(delay: Any, **instants: Any) -> None:
    """Raise InvalidInput for a delay or an instant (None: not given) that no column could hold."""
    if delay is not None:
        try:
            duration(delay)
        except Wrong as wrong:
            raise InvalidInput(f"the delay {wrong}", hint=wrong.hint) from None
    for name, instant in instants.items():
        if instant is not None and (not isinstance(instant, datetime) or instant.tzinfo is None):
            raise InvalidInput(
                f"{name} is not an instant with an offset", hint="Give datetime(2030, 1, 31, 9, tzinfo=UTC)."
            )
        if instant is not None and not FIRST_YEAR <= instant.year < LAST_YEAR:
            raise InvalidInput(f"{name} is out of the calendar", hint="Give a year from 1970 to 8999.")


def _digest(ref: str, body: bytes) -> str:
    """Return the digest of a start. Two starts with one key are the same request if their parameters are stored alike."""
    return hashlib.sha256(f"{ref}\0".encode() + stored_form(body)).hexdigest()


def _options(request: Request) -> str | None:
    """Return the options that are stored with the execution, as JSON. Raises InvalidInput for a budget."""
    options = dict(request.options or {})
    if request.budget is not None:
        try:
            options["budget"] = check_budget(request.budget)
        except Wrong as wrong:
            raise InvalidInput(f"budget: {wrong}", hint=wrong.hint) from None
        options["when_spent"] = request.when_spent
    if request.when_spent not in get_args(WhenSpent):
        raise InvalidInput(
            f"when_spent is not {' or '.join(get_args(WhenSpent))}", hint="Give when_spent='wait'."
        )
    for name in ("max_depth", "max_descendants"):
        if (bound := getattr(request, name)) is not None:
            options[name] = check_bound(name, bound)
    if (debounce := debounce_options(request)) is not None:
        options["debounce"] = debounce
    if request.labels:
        options["labels"] = _labels(request.labels)
    return orjson.dumps(options).decode() if options else None


def _labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of a start. Raises InvalidInput for labels that are not valid."""
    try:
        return check_labels(labels)
    except Wrong as wrong:
        raise InvalidInput(f"labels {wrong}", hint=wrong.hint) from None


def debounce_options(request: Request) -> dict[str, Any] | None:
    """Return the debounce options as they are stored, or None. Raises InvalidInput if they contradict each other or the
    other options of the start."""
    if request.debounce is None:
        if request.debounce_key is not None or request.at_most is not None or request.keep != "last":
            raise InvalidInput(
                "debounce_key, at_most or keep is given without debounce", hint="Add the time: debounce='5s'."
            )
        return None
    for name in ("delay", "at", "expires_at"):
        if getattr(request, name) is not None:
            raise InvalidInput(
                f"`debounce` and `{name}` are both given",
                hint="A start with debounce is due when its burst closes. Bound that time with at_most.",
            )
    if request.keep == "all":
        raise InvalidInput(
            "keep='all' is for rules: a start has no template that could take a list of parameters",
            hint="Publish an event for each, and let a rule with keep='all' start the action.",
        )
    if request.keep not in ("last", "first"):
        raise InvalidInput(
            "`keep` is neither 'last' nor 'first'", hint="Leave it out to keep the last parameters."
        )
    options: dict[str, Any] = {"seconds": _burst_time("debounce", request.debounce), "keep": request.keep}
    if request.debounce_key is not None:
        options["key"] = check_name(request.debounce_key, "the debounce_key")
    if request.at_most is not None:
        options["at_most"] = _burst_time("at_most", request.at_most)
    return options


def _burst_time(name: str, value: Any) -> float:
    try:
        return at_most_a_day(positive_seconds(value))
    except Wrong as wrong:
        raise InvalidInput(f"{name} {wrong}", hint=wrong.hint) from None


def check_bound(name: str, bound: Any) -> int:
    """Return a bound of a chain. Raises InvalidInput if it is not a whole number from 1 on."""
    if not isinstance(bound, int) or isinstance(bound, bool) or not 1 <= bound <= INTEGER:
        raise InvalidInput(
            f"{name} is not a whole number from 1 to {INTEGER}", hint=f"Give {name}=100, or leave it out."
        )
    return bound


def _execution_of(caller: str | None) -> UUID | None:
    """Return the execution of which an API caller has the token; None for any other caller."""
    if caller is None or not caller.startswith(EXECUTION_CALLER):
        return None
    try:
        return UUID(caller.removeprefix(EXECUTION_CALLER))
    except ValueError:
        return None


def _origin(request: Request) -> str | None:
    traced = tracing.current()
    origin: dict[str, Any] = {"by": request.by} if request.by else {}
    starter = request.started_by or _execution_of(request.by)
    if starter is not None:
        origin["started_by"] = str(starter)
    if traced:
        origin["trace"] = traced
    return orjson.dumps(origin).decode() if origin else None
