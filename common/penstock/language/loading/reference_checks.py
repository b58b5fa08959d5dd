"""The checks that references lead to existing definitions and pass the parameters that these take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from penstock.errors import DefinitionError, as_one
from penstock.language.definitions.action import Action
from penstock.language.definitions.limit import EVERYTHING, Limit
from penstock.language.definitions.rule import Rule
from penstock.language.definitions.schedule import Schedule
from penstock.language.definitions.window import Window
from penstock.language.expressions import NamesUsed, condition, names_used
from penstock.language.rules.event_rules import EVENT
from penstock.language.rules.parameter_checks import Names, misfits, names_of, unknown_names
from penstock.language.schedules.reserved_context import RESERVED
from penstock.language.schemas.secrets import has_secrets, is_secret_at
from penstock.language.terms.costs import parameters_of
from penstock.language.terms.options import Problem, UnknownRef, did_you_mean, dotted
from penstock.language.terms.parameter_paths import is_label, meant_label
from penstock.language.terms.sources import Location
from penstock.language.terms.system_triggers import schemas

KnownRefs = Mapping[str, Mapping[str, Mapping[str, Any] | None]]
"""The definitions that exist elsewhere: by kind (action, workflow, trigger) and ref, the schema of the parameters or
payload, or None."""
EXECUTION = ("id", "attempt", "tenant", "action", "root", "workflow", "task")
"""The fields of `execution` in the templates of an HTTP action."""
RESPONSE = ("status", "headers", "links", "body")
"""The fields of `response` in those that read a response."""
SHOWN = "Lists show the title. Use a parameter that is not a secret, such as an id."
NAMED = 4
"""The number of further places that a line of the error names."""


class _ReferenceTargets:
    """The definitions that references may lead to, by ref."""

    def __init__(self, definitions: Sequence[Any], known_refs: KnownRefs) -> None:
        # Imported late: the package `workflows` imports definitions, which would be an import cycle.
        from penstock.language.workflows.known_definition import KnownDefinition

        def known_of(kind: str, schemas: Iterable[tuple[str, Any]]) -> dict[str, KnownDefinition]:
            elsewhere = {
                ref: KnownDefinition(kind, schema) for ref, schema in known_refs.get(kind, {}).items()
            }
            return elsewhere | {ref: KnownDefinition(kind, schema) for ref, schema in schemas}

        of = {
            kind: [definition for definition in definitions if definition.kind == kind]
            for kind in ("action", "workflow", "trigger")
        }
        self.workflows = known_of(
            "workflow", ((definition.ref, definition.parameters) for definition in of["workflow"])
        )
        self.triggers = known_of(
            "trigger",
            [*schemas(), *((definition.ref, definition.payload_schema) for definition in of["trigger"])],
        )
        self.runnable = self.workflows | known_of(
            "action", ((definition.ref, definition.parameters_schema) for definition in of["action"])
        )


def referred(definitions: Iterable[Any]) -> set[str]:
    """Return the refs of the actions, workflows and triggers that `definitions` refer to."""
    from penstock.language.workflows.check import steps

    refs: set[str] = set()
    for item in definitions:
        if isinstance(item, Rule):
            refs |= {*item.triggers, item.action}
        elif isinstance(item, Schedule):
            refs.add(item.action)
        elif isinstance(item, Limit):
            refs.add(str(item.scope))
        elif item.kind == "workflow":
            refs |= {step.refers_to for _, step in steps(item) if step.refers_to}
    return refs


def check_references(
    definitions: Sequence[Any], known_refs: KnownRefs, *, accept_unknown: bool = False
) -> None:
    """Raise one DefinitionError for all wrong references. The same fault at several places is one line.

    With `accept_unknown`, a reference may lead to a definition that is not known."""
    from penstock.language.workflows.check import with_task_name

    targets = _ReferenceTargets(definitions, known_refs)
    places: dict[str, list[str]] = {}
    first: dict[str, tuple[str, str | None]] = {}
    for item in definitions:
        for problem in _problems(item, targets):
            if accept_unknown and isinstance(problem, UnknownRef):
                continue
            message = problem.message
            if item.kind == "workflow":
                message = with_task_name(problem, [task.name for task in item.tasks])
            place = item.source.at(problem.at)
            line = place.before(f"{item.kind} {item.ref}: {message}")
            first.setdefault(problem.message, (line, problem.hint))
            places.setdefault(problem.message, []).append(str(place) or item.ref)
    if first:
        raise as_one(
            [
                DefinitionError(line + _and_more(places[message][1:]), hint=hint)
                for message, (line, hint) in first.items()
            ]
        )


def _and_more(places: Sequence[str]) -> str:
    """Return the text that names further places of the same fault."""
    if not places:
        return ""
    named = ", ".join(places[:NAMED]) + (", ..." if len(places) > NAMED else "")
    return f" (and at {len(places)} more place{'s' * (len(places) > 1)}: {named})"


def _problems(item: Any, targets: _ReferenceTargets) -> Iterator[Problem]:
    from penstock.language.workflows.check import unknown_refs

    if isinstance(item, Rule):
        yield from _of_rule(item, targets)
    elif isinstance(item, Schedule):
        yield from _of_schedule(item, targets)
    elif isinstance(item, Limit):
        yield from _of_limit(item, targets)
    elif item.kind == "workflow":
        yield from unknown_refs(item, targets.triggers | targets.runnable)
        yield from _of_title(item.title, item.parameters)
    elif item.kind == "action":
        yield from _of_title(item.choices.title, item.parameters_schema)
        for name in ("on_success", "on_failure"):
            for ref in getattr(item.choices, name):
                yield from _unknown((name,), f"{name}: unknown action", ref, targets.runnable)
        yield from _of_request(item)


def _of_title(title: str | None, schema: Mapping[str, Any] | None) -> Iterator[Problem]:
    """Yield a problem for each parameter that a title reads and that its action never has: such a title stays empty."""
    if title is not None:
        yield from _undefined(("title",), names_used(title), {"parameters": names_of(schema)})


def _of_request(action: Action[..., Any]) -> Iterator[Problem]:
    """Yield a problem for each name that the templates of an HTTP action read, and that its worker does not give them."""
    request = action.options.get("request")
    if not isinstance(request, Mapping):
        return
    declared = dict.fromkeys(action.options.get("secrets") or {})
    names = {
        "parameters": names_of(action.parameters_schema),
        "secrets": declared,
        "context": None,
        "execution": dict.fromkeys(EXECUTION),
    }
    pages = request.get("pages") or {}
    answered = {**names, "response": dict.fromkeys(RESPONSE)}
    sent = {name: part for name, part in request.items() if name not in ("result", "pages")}
    of_answer = {"result": request.get("result"), "pages": [pages.get("items"), pages.get("next")]}
    for at, template, available in (
        ("url", action.options.get("url"), names),
        *((at, template, names) for at, template in sent.items()),
        ("result", of_answer["result"], answered | ({"items": None} if pages else {})),
        ("pages", of_answer["pages"], answered),
    ):
        for problem in unknown_names(names_used(template), available):
            hint = problem.hint
            if problem.at[0] == "secrets" and len(problem.at) > 1:
                hint = f'Declare it: secrets={{"{problem.at[1]}": "NAME"}}, with the name of a stored secret.'
            yield Problem((at,), problem.message, hint)


def _of_rule(rule: Rule, targets: _ReferenceTargets) -> Iterator[Problem]:
    if rule.window is not None:
        yield from _of_window(rule, rule.window, targets)
        return
    [trigger] = rule.triggers
    yield from _unknown(("trigger",), "unknown trigger", trigger, targets.triggers)
    target = targets.triggers.get(trigger)
    payload = target.schema if target else None
    yield from _of_call(rule, targets, {"payload": payload, "event.payload": payload})
    available = _names_of_event(trigger, targets)
    in_params = {**available, "payloads": None} if rule.keep == "all" else available
    if rule.when is not None:
        yield from _undefined(("when",), condition(rule.when).names, available)
    if paths := frozenset(tuple(path.split(".")) for path in rule.by if not is_label(path)):
        yield from _undefined(("by",), NamesUsed(paths), available)
    yield from _undefined(("params",), names_used(rule.params), in_params | {"secrets": None})
    yield from _undefined(("labels",), names_used(rule.labels), available)
    yield from _shown_secrets(rule, {("payload",): trigger, ("event", "payload"): trigger}, targets)


def _shown_secrets(
    rule: Rule, payloads: Mapping[tuple[str, ...], str], targets: _ReferenceTargets
) -> Iterator[Problem]:
    """Yield a problem for each label that reads a secret of a payload. `payloads` are the triggers of the names under which
    templates find a payload."""
    for path in sorted(names_used(rule.labels).paths, key=str):
        for name, trigger in payloads.items():
            target = targets.triggers.get(trigger)
            schema = target.schema if target else None
            if not schema or path[: len(name)] != name:
                continue
            below = path[len(name) :]
            if is_secret_at(below, schema) or (not below and has_secrets(schema)):
                yield Problem(("labels",), f"labels: `{dotted(path)}` is a secret of {trigger}", SHOWN)


def _names_of_event(trigger: str, targets: _ReferenceTargets) -> dict[str, Any]:
    """Return the names that expressions have for an event of this trigger."""
    target = targets.triggers.get(trigger)
    payload = names_of(target.schema) if target else None
    return {"event": {**dict.fromkeys(EVENT), "payload": payload}, "payload": payload}


def _of_window(rule: Rule, window: Window, targets: _ReferenceTargets) -> Iterator[Problem]:
    for number, part in enumerate(window.parts):
        at = ("window", window.pattern, number)
        yield from _unknown(at, "unknown trigger", part.trigger, targets.triggers)
        available = _names_of_event(part.trigger, targets)
        if part.when is not None:
            yield from _undefined((*at, "when"), condition(part.when).names, available)
        paths = {tuple(path.split(".")) for path in part.by or window.by}
        if window.timestamp is not None:
            paths.add(tuple(window.timestamp.split(".")))
        yield from _undefined((*at, "by"), NamesUsed(frozenset(paths)), available)
    yield from _of_call(rule, targets)
    is_open = window.pattern in ("all", "any")  # the event of any part can be the last event
    last = _names_of_event(window.parts[-1 if window.pattern == "sequence" else 0].trigger, targets)
    named = {part.name: _names_of_event(part.trigger, targets)["event"] for part in window.parts if part.name}
    available = {**({"event": None, "payload": None} if is_open else last), "events": None, "parts": named}
    yield from _undefined(("params",), names_used(rule.params), available | {"secrets": None})
    yield from _undefined(("labels",), names_used(rule.labels), available)
    payloads: dict[tuple[str, ...], str] = {
        ("parts", part.name, "payload"): part.trigger for part in window.parts if part.name
    }
    if not is_open:
        trigger = window.parts[-1 if window.pattern == "sequence" else 0].trigger
        payloads |= {("payload",): trigger, ("event", "payload"): trigger}
    yield from _shown_secrets(rule, payloads, targets)


def _of_schedule(schedule: Schedule, targets: _ReferenceTargets) -> Iterator[Problem]:
    yield from _of_call(schedule, targets)
    if schedule.retry is not None and schedule.action in targets.workflows:
        hint = "Set it on the tasks of the workflow."
        yield Problem(("retry",), "retry: a workflow is not tried again as a whole", hint)
    context = dict.fromkeys([*schedule.context, *RESERVED])
    available = {**context, "context": context, "secrets": None}
    yield from _undefined(("params",), names_used(schedule.params), available)


def _of_limit(limit: Limit, targets: _ReferenceTargets) -> Iterator[Problem]:
    """Yield a problem for each parameter that an action never has. With such a `by`, all executions would be counted as one
    group, and with such a cost, all would be refused. A secret may not group, since lists show the groups. A breaker of a
    workflow would count nothing: it counts attempts."""
    if limit.breaker is not None and str(limit.scope) in targets.workflows:
        yield Problem(
            ("scope",),
            f"a breaker counts the attempts of actions, and {limit.scope} is a workflow",
            "Give the breaker to the action that calls the service, or the limit the scope of its pack.",
        )
    scope = str(limit.scope)
    packs = {ref.partition(".")[0] for ref in targets.runnable}
    # A task of a workflow is a scope, too.
    is_known = scope in targets.runnable or scope in packs or scope.rpartition(".")[0] in targets.workflows
    if scope != EVERYTHING and not is_known:
        yield UnknownRef(
            ("scope",),
            f"it covers nothing: there is no {'action' if '.' in scope else 'pack'} {scope!r}",
            did_you_mean(scope, targets.runnable if "." in scope else packs),
        )
    covered = targets.runnable.get(scope)
    available = names_of(covered.schema) if covered else None
    for field in ("by", "fair"):
        for path in getattr(limit, field):
            if is_label(path):
                continue
            for ref, target in targets.runnable.items():
                if (ref == scope or ref.startswith(f"{scope}.")) and is_secret_at(
                    path.split("."), target.schema or {}
                ):
                    yield Problem((field,), f"{field}: `{path}` is a secret of {ref}", SHOWN)
            paths = frozenset([("parameters", *path.split("."))])
            for problem in unknown_names(NamesUsed(paths), {"parameters": available}):
                label = meant_label(path)
                yield Problem(
                    (field,), problem.message, f"Did you mean {label!r}?" if label else problem.hint
                )
    if limit.cost is not None:
        costs = frozenset(("parameters", *path.split(".")) for path in parameters_of(limit.cost))
        yield from _undefined(("cost",), NamesUsed(costs), {"parameters": available})


def _of_call(
    item: Rule | Schedule,
    targets: _ReferenceTargets,
    schemas: Mapping[str, Mapping[str, Any] | None] = {},
) -> Iterator[Problem]:
    yield from _unknown(("action",), "unknown action", item.action, targets.runnable)
    if (action := targets.runnable.get(item.action)) is not None:
        for problem in misfits(item.params, item.action, action.schema, schemas=schemas):
            yield Problem(("params", *problem.at), problem.message, problem.hint)


def _unknown(at: Location, fault: str, ref: str, available: Mapping[str, Any]) -> Iterator[Problem]:
    if ref not in available:
        yield UnknownRef(at, f"{fault} {ref!r}", did_you_mean(ref, available))


def _undefined(at: Location, used: NamesUsed, available: Names) -> Iterator[Problem]:
    for problem in unknown_names(used, available):
        yield Problem(at, problem.message, problem.hint)
