"""The consequences of an error for the attempt that it ends, read from exception groups and chains of causes."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.errors import ResultNotStorable, StepFailed
from penstock.run.steering import AskInquiry, Defer, Later, NonRetryable, Retry


def leaves(error: BaseException) -> list[BaseException]:
    """Return the errors in an exception group and in its nested groups, or the error itself if it is not a group."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for member in error.exceptions for leaf in leaves(member)]


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, its causes and contexts, the members of groups, and so on, each once."""
    pending, error_ids = [error], set[int]()
    while pending:
        link = pending.pop()
        if id(link) in error_ids:
            continue
        error_ids.add(id(link))
        yield link
        if isinstance(link, BaseExceptionGroup):
            pending += link.exceptions
        if link.__cause__ is not None:
            pending.append(link.__cause__)
        elif link.__context__ is not None and not link.__suppress_context__:
            pending.append(link.__context__)


def failed_steps(error: BaseException) -> tuple[tuple[str, int], ...]:
    """Return the steps of a durable function that caused an error, by name and ordinal."""
    steps = []
    for link in chain(error):
        if isinstance(link, StepFailed):
            steps.append((link.name, link.ordinal))
        elif (step := getattr(link, "step", None)) is not None and isinstance(step, tuple) and len(step) == 2:
            steps.append((str(step[0]), int(step[1])))
    return tuple(dict.fromkeys(steps))


def is_final(error: BaseException) -> bool:
    """Return whether an error says that another attempt would be useless."""
    return isinstance(error, NonRetryable | ResultNotStorable) or (
        isinstance(error, StepFailed) and error.final
    )


def steering_of(error: BaseException) -> Defer | AskInquiry | Later | None:
    """Return the steering that an error, or all errors of a group, stand for. None if the error is a failure."""
    members = leaves(error)
    if all(isinstance(leaf, Defer) for leaf in members):
        deferrals = [leaf for leaf in members if isinstance(leaf, Defer)]
        return latest(deferrals)
    if len(members) == 1 and isinstance(members[0], AskInquiry | Later):
        return members[0]
    return None


def latest(deferrals: list[Defer]) -> Defer:
    """Return the deferral that ends last, with what the first one carries."""
    last = max(deferrals, key=lambda defer: (defer.until is not None, defer.until or 0, defer.delay or 0.0))
    last.carry = deferrals[0].carry
    return last


def verdict_of(error: BaseException) -> tuple[bool | None, float | None]:
    """Return whether an error demands or forbids a retry (None: neither), and after how many seconds."""
    members = leaves(error)
    if any(is_final(leaf) for leaf in members):
        return False, None
    if any(isinstance(leaf, AskInquiry | Later) for leaf in members):
        return False, None
    retries = [leaf for leaf in members if isinstance(leaf, Retry)]
    if not retries:
        return None, None
    return True, max((leaf.after for leaf in retries if leaf.after is not None), default=None)
